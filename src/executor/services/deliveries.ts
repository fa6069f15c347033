import type { Agent } from '../../agent/agent.ts';
import { type RunOutcome, withoutId } from '../../run/result.ts';
import { isDelivering } from '../../store/capabilities.ts';
import type { DeliveryStore, UndeliveredEnd } from '../../store/deliveries/port.ts';
import { withDeadline } from '../../values/deadline.ts';
import type { Config } from '../host/config.ts';
import { type PaletteEntries, SKILL } from './palette-entries.ts';

/** How many ends are delivered at once. */
const PAGE = 20;

interface Parts {
  readonly config: Config;
  readonly palette: PaletteEntries;
  /** The agents that this executor has begun runs or threads of. */
  readonly seenAgents: ReadonlyMap<string, Agent>;
}

/**
 * Delivers to this executor's `onOutcome` the ends that no process has delivered: of runs that another process ended, and those that
 * were refused. It looks as often as for due runs, from the first use of the executor on, and keeps no process alive.
 */
export class Deliveries {
  readonly #config: Config;
  readonly #parts: Parts;
  readonly #marks: DeliveryStore | undefined;
  #ids: readonly string[] = [];
  /** The newest of those agents when the ids were read. */
  #newest: Agent | undefined;
  #turn = 0;
  #timer: unknown;
  #hasBegun = false;
  #isOver = false;
  #isFailing = false;
  #looking: Promise<void> | undefined;

  constructor(parts: Parts) {
    const { config } = parts;
    const { store, onOutcome, keepOutcomesMs, warn } = config;
    this.#config = config;
    this.#parts = parts;
    this.#marks = onOutcome && store && isDelivering(store) ? store.deliveries : undefined;
    // A host that keeps no outcomes asks for the ends of its own process.
    if (onOutcome && store && !this.#marks && keepOutcomesMs > 0) warn('outcome.delivery.partial', {});
  }

  /** Looks from now on. */
  begin(): void {
    if (!this.#marks || this.#isOver || this.#hasBegun) return;
    this.#hasBegun = true;
    this.#arm();
  }

  /** Delivers what is due now. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Takes no more ends. @returns when those that it has taken are delivered, or refused */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#config.clock.clearTimeout(this.#timer);
    await this.#looking;
  }

  #arm(): void {
    if (this.#isOver) return;
    const { clock, random, defaults } = this.#config;
    this.#timer = clock.setTimeout(
      () => void this.look().then(() => this.#arm()),
      defaults.dueMs * (0.75 + random() / 2),
    );
    (this.#timer as Partial<NodeJS.Timeout> | undefined)?.unref?.();
  }

  async #look(): Promise<void> {
    const marks = this.#marks;
    if (!marks) return;
    const { warn, defaults } = this.#config;
    try {
      for (let ends: readonly UndeliveredEnd[] = []; !this.#isOver; ) {
        ends = await marks.take({ agentIds: this.#agentIds(), limit: PAGE, leaseMs: defaults.portMs });
        await Promise.all(ends.map((end) => this.#deliver(marks, end)));
        if (ends.length < PAGE) break;
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) warn('outcome.read.failed', { error });
      this.#isFailing = true;
    }
  }

  async #deliver(marks: DeliveryStore, { runId, outcome }: UndeliveredEnd): Promise<void> {
    const { outcomeId } = outcome;
    const given = { ...withoutId(outcome), outcomeId } as RunOutcome;
    try {
      await offerOutcome(this.#config, given);
    } catch (error) {
      this.#config.warn('outcome.delivery.failed', { runId, error });
      noticeUndelivered(this.#config, given);
      return;
    }
    try {
      await marks.mark(runId, outcomeId);
    } catch (error) {
      this.#config.warn('outcome.mark.failed', { runId, error });
    }
  }

  /** Each look begins with another agent: what one has to deliver does not hold up the others. */
  #agentIds(): readonly string[] {
    const { config, seenAgents } = this.#parts;
    const roots = [...config.agents.values(), ...seenAgents.values()];
    if (roots.at(-1) !== this.#newest) this.#ids = idsOf(roots, this.#parts.palette);
    this.#newest = roots.at(-1);
    const at = this.#ids.length > 0 ? this.#turn++ % this.#ids.length : 0;
    return [...this.#ids.slice(at), ...this.#ids.slice(0, at)];
  }
}

/** Calls the host's `onOutcome`. @throws what it throws, and after `portMs` */
export async function offerOutcome({ onOutcome, clock, defaults }: Config, outcome: RunOutcome): Promise<void> {
  const answer = (async () => onOutcome?.(outcome))();
  await withDeadline(answer, { ms: defaults.portMs, clock, what: 'onOutcome' });
}

/** Gives one notice of an end that `onOutcome` did not accept, however often it is delivered again. */
export function noticeUndelivered({ notices }: Config, { runId, outcomeId }: RunOutcome): void {
  notices.giveOnce({ kind: 'undelivered', noticeId: `${outcomeId}:undelivered`, runId, outcomeId });
}

/** The ids of agents, and of those of the palette that their calls begin. */
function idsOf(roots: readonly Agent[], palette: PaletteEntries): readonly string[] {
  const ids = new Set<string>();
  const left = [...roots];
  for (let agent = left.pop(); agent; agent = left.pop()) {
    ids.add(agent.id);
    for (const skill of agent.skills ?? []) ids.add(`${SKILL}${skill}`);
    for (const name of agent.subAgents ?? []) {
      const child = ids.has(name) ? undefined : palette.agentById(name);
      if (child) left.push(child);
      ids.add(name);
    }
  }
  return [...ids];
}
