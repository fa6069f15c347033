import { createExecutor, createPalette, defineAgent, defineTool, type Executor, memoryStore, type Tool } from 'pawl';
import { callTools, reply, type ScriptedRequest, testClock } from 'pawl/testing';
import { topicOf } from '../../src/run/identity.ts';
import type { SettledWait, Wait } from '../../src/run/waits/wait.ts';
import { EffectLedger, runIdOfKey } from '../../src/testing/crash-test/ledger.ts';
import { Life } from '../../src/testing/crash-test/life.ts';
import { ModelMemory } from '../../src/testing/crash-test/model.ts';
import { type MortalProcess, type ProcessJob, processOf } from '../../src/testing/crash-test/process.ts';
import { answeringModel, turnsOf } from '../fixtures/answering-model.ts';
import { type Decision, TICK_MS, type WaitingStory } from './waiting-plans.ts';

const MINUTE = 60_000;
const MAX_TICKS = 2_000;
const PROCESSES = 3;
const RUN = 'run';

type OpenWait = Wait & { readonly runId: string };

/** Notes how each wait ended, as records have it. */
class WaitLedger extends EffectLedger {
  readonly ends = new Map<string, SettledWait>();
  readonly opened = new Map<string, OpenWait>();

  override wrote(method: string, args: readonly unknown[], isClear: boolean): void {
    super.wrote(method, args, isClear);
    const record = isClear ? this.recordOf(runIdOfKey(args)) : undefined;
    if (!record) return;
    for (const call of record.openStep?.calls ?? []) {
      if (call.effect === 'once' && call.state === 'started')
        this.unknown.add(this.idOf(record.meta.runId, call.callId));
    }
    const { waits = [], settled = [] } = record.waiting ?? {};
    for (const wait of waits) this.opened.set(wait.id, { ...wait, runId: record.meta.runId });
    for (const end of settled) {
      const before = this.ends.get(end.id);
      if (before && before.how !== end.how && end.kind !== 'retry')
        this.complain('h', `wait ${end.id} ended as ${before.how}, and again as ${end.how}`);
      this.ends.set(end.id, end);
    }
  }

  nameOf({ runId, callId = '' }: OpenWait): string {
    return this.idOf(runId, callId);
  }
}

interface Slot {
  life: Life;
  process: MortalProcess | undefined;
  /** When the next process begins. */
  restartAt: number;
}

/** What became of a history. */
export interface WaitingHistory {
  readonly complaints: readonly string[];
  readonly deaths: number;
  readonly ends: readonly string[];
  readonly status: string | undefined;
}

/** Three processes on one store, two persons, and a model that may be away. */
export class WaitingWorld {
  readonly #story: WaitingStory;
  readonly #clock = testClock(1_700_000_000_000);
  readonly #store = memoryStore({ clock: this.#clock });
  readonly #ledger = new WaitLedger(RUN);
  readonly #slots: Slot[] = [];
  readonly #outside: Executor;
  readonly #decided = new Map<string, number>();
  /** When the first answer to a wait was stored. */
  readonly #answered = new Map<string, number>();
  #deaths = 0;
  #decisions = 0;

  constructor(story: WaitingStory) {
    this.#story = story;
    const models = () => {
      throw new TypeError('persons ask no model');
    };
    this.#outside = createExecutor({
      models,
      store: this.#store,
      clock: this.#clock,
      logger: { warn: () => {} },
    });
  }

  async play(): Promise<WaitingHistory> {
    for (let i = 0; i < PROCESSES; i++) this.#slots.push({ life: new Life(), process: undefined, restartAt: 0 });
    for (let tick = 0; tick < MAX_TICKS && !(await this.#isOver()); tick++) {
      for (const slot of this.#slots) this.#keepAlive(slot);
      await this.#clock.advance(TICK_MS);
      await this.#decide();
    }
    if (!(await this.#isOver()))
      this.#ledger.complain('a', `the run did not end: ${JSON.stringify(await this.#open())}`);
    for (const { life } of this.#slots) life.end();
    this.#judge();
    const { complaints, ends, outcomes } = this.#ledger;
    return {
      complaints: complaints.map(({ promise, detail }) => `${promise}: ${detail}`),
      deaths: this.#deaths,
      ends: [...ends.values()].map(({ kind, how }) => `${kind} ${how}`),
      status: outcomes.at(-1)?.outcome.status,
    };
  }

  /** Begins a process where none is. A claim of a dead one ends by its time. */
  #keepAlive(slot: Slot): void {
    if (slot.process && !slot.life.isOver) return;
    const now = this.#clock.now();
    if (slot.process) {
      slot.process = undefined;
      slot.restartAt = now + (this.#story.restartMs[this.#deaths % this.#story.restartMs.length] ?? 0);
      this.#deaths += 1;
    }
    if (now < slot.restartAt) return;
    const at = this.#story.deaths[this.#ledger.life];
    this.#ledger.life += 1;
    slot.life = new Life((_, index) => (index === at ? 'crash' : undefined));
    slot.process = processOf(this.#job(), {
      store: this.#store,
      life: slot.life,
      ledger: this.#ledger,
      isForeign: () => false,
    });
    void this.#work(slot.process).catch(() => {});
  }

  /** A claim of a process that died before its first save refuses the start for a while. */
  async #work({ executor, start }: MortalProcess): Promise<void> {
    await executor.recover({ maxAttempts: 99 });
    while (this.#slots[0]?.process?.executor === executor) {
      if (this.#ledger.outcomes.length > 0 || (await this.#store.load(RUN)) !== null) return;
      await start(RUN).then(
        ({ result }) => result,
        () => {},
      );
      await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, TICK_MS));
    }
  }

  async #isOver(): Promise<boolean> {
    return this.#ledger.outcomes.length > 0 && (await this.#ids()).length === 0;
  }

  async #ids(): Promise<string[]> {
    const ids = [...this.#ledger.stored()].map(({ runId }) => runId);
    const found = await Promise.all(ids.map((runId) => this.#store.load(runId)));
    return found.flatMap((record) => (record ? [record.meta.runId] : []));
  }

  async #open(): Promise<OpenWait[]> {
    const all: OpenWait[] = [];
    for (const runId of await this.#ids()) {
      for (const wait of (await this.#store.load(runId))?.waiting?.waits ?? []) all.push({ ...wait, runId });
    }
    return all;
  }

  /** The persons look at all open waits, and at those that they have answered before. */
  async #decide(): Promise<void> {
    const now = this.#clock.now();
    for (const wait of await this.#open()) {
      if (wait.kind === 'child' || wait.kind === 'retry') continue;
      const at = this.#decided.get(wait.id) ?? this.#decisions++;
      this.#decided.set(wait.id, at);
      const decision = this.#story.decisions[at % this.#story.decisions.length];
      if (!decision || now < wait.createdAt + decision.afterMs) continue;
      for (const [i, by] of ['ada', 'bob'].entries()) {
        const how = i === 0 ? decision.ada : decision.bob;
        for (let times = 0; how !== 'none' && times < (decision.isTwice ? 2 : 1); times++)
          void this.#give(wait, { ...decision, how, by }).catch(() => {});
      }
    }
    // Late, long after its wait is over.
    for (const [waitId, end] of this.#ledger.ends) {
      const wait = this.#ledger.opened.get(waitId);
      if (wait && end.kind === 'approval' && now > end.at + MINUTE && now <= end.at + MINUTE + TICK_MS)
        void this.#give(wait, { how: 'yes', by: 'late', isHere: false }).catch(() => {});
    }
  }

  async #give(
    wait: OpenWait,
    { how, by, isHere }: Pick<Decision, 'isHere'> & { how: 'yes' | 'no'; by: string },
  ): Promise<void> {
    const { kind, id, runId } = wait;
    const sentAt = this.#clock.now();
    const live = this.#slots.find(({ process, life }) => process && !life.isOver && process.executor.get(runId));
    const executor = isHere && live?.process ? live.process.executor : this.#outside;
    const control = executor.control(RUN);
    const isOpen = !this.#ledger.ends.has(id);
    if (kind === 'approval' && how === 'yes' && isOpen) this.#ledger.onApproved(wait);
    const person = { by: { id: by } };
    if (kind === 'approval') await (how === 'yes' ? control.approve(id, person) : control.deny(id, person));
    else if (kind === 'timer' && how === 'yes') await control.wake(id);
    else if (kind === 'question') await control.answer(id, how, person);
    else if (kind === 'event')
      await this.#store.waits.signal({
        topic: topicOf(wait.name, wait.key),
        id: `${by} ${id}`,
        value: how,
        untilMs: sentAt + 5 * MINUTE,
      });
    else return;
    const isWhole = kind !== 'approval' || how === 'no' || wait.quorum === 1;
    if (isWhole && !this.#answered.has(id)) this.#answered.set(id, sentAt);
  }

  #judge(): void {
    const { ledger } = { ledger: this.#ledger };
    const begun = Map.groupBy(
      ledger.calls.filter(({ hasWaited }) => !hasWaited),
      ({ id }) => id,
    );
    for (const [id, calls] of begun) {
      if (calls[0]?.effect === 'once' && calls.length > 1)
        ledger.complain('c', `once call ${id} started ${calls.length} times`);
    }
    for (const [waitId, { how, kind }] of ledger.ends) {
      const wait = ledger.opened.get(waitId);
      if (!wait || kind !== 'approval') continue;
      const id = ledger.nameOf(wait);
      const times = begun.get(id)?.length ?? 0;
      if (how !== 'approve' && times > 0) ledger.complain('h', `call ${id} ended as ${how}, and started`);
      const isWell = ledger.outcomes.at(-1)?.outcome.status === 'ok';
      if (how === 'approve' && times === 0 && isWell && !ledger.unknown.has(id))
        ledger.complain('h', `call ${id} was approved, and never started`);
    }
    for (const [waitId, end] of ledger.ends) {
      const at = this.#answered.get(waitId);
      const { dueAt } = ledger.opened.get(waitId) ?? {};
      if (end.how === 'expire' && end.kind !== 'timer' && at !== undefined && dueAt !== undefined && at <= dueAt)
        ledger.complain('h', `wait ${waitId} expired although its answer was stored in time`);
    }
  }

  #job(): ProcessJob {
    const clock = this.#clock;
    const { steps, childSteps, away } = this.#story;
    const model = answeringModel((request: ScriptedRequest) => {
      const passed = clock.now() - 1_700_000_000_000;
      if (away && passed >= away.fromMs && passed < away.fromMs + away.ms)
        throw Object.assign(new Error('overloaded'), { statusCode: 503 });
      const plan = request.system === 'Help.' ? childSteps : steps;
      const turn = turnsOf(request);
      const calls = plan[turn];
      return calls
        ? callTools(
            calls.map((name, i) => ({
              name,
              input: name.startsWith('agent__') ? { prompt: 'Help.' } : {},
              callId: `${turn}-${i}`,
            })),
          )
        : reply('done');
    }, 100_000);
    const tools = toolsOf();
    const helper = defineAgent({ id: 'helper', instructions: 'Help.', tools });
    return {
      agent: defineAgent({ id: 'boss', instructions: 'Do it.', tools, subAgents: ['helper'] }),
      invocation: { prompt: 'Go.' },
      tools: [],
      executor: {
        clock,
        defaults: { waitLingerMs: 1_000, dueMs: 5_000, controlMs: 2_000, maxAttempts: 99 },
        ports: { palette: createPalette({ agents: [helper] }) },
      },
      memory: new ModelMemory(),
      modelFor: () => model,
      isAlone: false,
    };
  }
}

/** Tools of each effect, with each kind of wait. */
function toolsOf(): Tool[] {
  const input = { type: 'object' } as const;
  const described = { description: 'A tool.', input };
  const approval = { expiresInMs: 2 * MINUTE };
  return [
    defineTool({
      ...described,
      name: 'pay',
      effect: 'once',
      needsApproval: true,
      approval,
      execute: async () => 'paid',
    }),
    defineTool({
      ...described,
      name: 'book',
      effect: 'idempotent',
      needsApproval: true,
      approval: { ...approval, quorum: 2 },
      execute: async () => 'booked',
    }),
    defineTool({ ...described, name: 'look', effect: 'read', execute: async () => 'seen' }),
    defineTool({ ...described, name: 'send', effect: 'once', execute: async () => 'sent' }),
    defineTool({
      ...described,
      name: 'ask',
      effect: 'once',
      execute: async (_, { ask }) => {
        const said = await ask({ question: 'Yes or no?', options: ['yes', 'no'], expiresInMs: 2 * MINUTE }).catch(
          () => 'silence',
        );
        return `asked: ${said}`;
      },
    }),
    defineTool({
      ...described,
      name: 'nap',
      effect: 'read',
      execute: async (_, { sleep }) => {
        await sleep(MINUTE);
        return 'awake';
      },
    }),
    defineTool({
      ...described,
      name: 'parcel',
      effect: 'read',
      execute: async (_, { waitFor, callId, runId }) =>
        waitFor('parcel', { key: `${runId} ${callId}`, timeoutMs: 2 * MINUTE }).catch(() => 'no parcel'),
    }),
  ] as unknown as Tool[];
}
