import fc from 'fast-check';
import type { CheckpointStore } from 'pawl';
import { DurableRun, type Kill, type LeapingClock } from './durable.ts';
import { LiveActor } from './live.ts';
import { eventTypes, type MachinePlan, machinePlans, SHORTEST_MS } from './machines.ts';

/** A random machine, what comes to it from outside, and where its processes die. */
export interface Story {
  readonly plan: MachinePlan;
  readonly events: readonly { readonly type: (typeof eventTypes)[number]; readonly afterMs: number }[];
  readonly kills: readonly Kill[];
  readonly isResting: boolean;
}

export const stories: fc.Arbitrary<Story> = fc.record({
  plan: machinePlans,
  events: fc.array(
    fc.record({ type: fc.constantFrom(...eventTypes), afterMs: fc.integer({ min: SHORTEST_MS, max: 30_000_000 }) }),
    { minLength: 1, maxLength: 8 },
  ),
  kills: fc.array(fc.record<Kill>({ writes: fc.nat(9), when: fc.constantFrom('before', 'after') }), { maxLength: 8 }),
  isResting: fc.boolean(),
});

/** Moments that are nearer than this may change their order by what restarts cost. */
const NEAR_MS = 500_000;
/** So many moments of a story are played. */
const MOST_MOMENTS = 24;

/** What became of a story. */
export interface Played {
  readonly crashes: number;
  readonly calls: number;
  readonly moments: number;
  readonly unknown: number;
  readonly excepted: string | undefined;
  readonly complaints: readonly string[];
  readonly status: string;
}

/** Plays a story twice, durably and as a live actor of XState, and compares the ends. */
export async function playStory(
  story: Story,
  given: { store: CheckpointStore; clock: LeapingClock; runId: string },
): Promise<Played> {
  const { plan, events, kills, isResting } = story;
  const durable = new DurableRun(plan, { ...given, kills, lingerMs: isResting ? 1 : 2 ** 31 - 1 });
  const live = new LiveActor(plan);
  const player = new Player(live, durable, plan.isTogether);
  try {
    let sendAt = 0;
    const sends = events.map(({ type, afterMs }, i) => {
      sendAt += afterMs;
      return { at: sendAt, type, id: `e${i}` };
    });
    return await player.play(sends);
  } finally {
    await durable.close();
  }
}

interface Send {
  readonly at: number;
  readonly type: string;
  readonly id: string;
}

class Player {
  readonly #live: LiveActor;
  readonly #durable: DurableRun;
  readonly #isTogether: boolean;
  #moments = 0;
  #unknown = 0;
  /** Calls that may have begun or not: the process died between. */
  readonly #unbegun = new Set<string>();

  constructor(live: LiveActor, durable: DurableRun, isTogether: boolean) {
    this.#isTogether = isTogether;
    this.#live = live;
    this.#durable = durable;
  }

  async play(sends: readonly Send[]): Promise<Played> {
    const left = [...sends];
    await this.#durable.start();
    await this.#live.start();
    await this.#tellUnknown(0);
    while (this.#moments < MOST_MOMENTS && !this.#live.excepted && this.#live.end.status === 'active') {
      const send = left[0];
      const next = this.#live.next(this.#isTogether);
      const times = [send?.at, left[1]?.at, next?.at, next?.after]
        .filter((at) => at !== undefined)
        .sort((a, b) => a - b);
      const [at = Number.POSITIVE_INFINITY, then = Number.POSITIVE_INFINITY] = times;
      if (!Number.isFinite(at) || then - at < NEAR_MS) break;
      this.#moments += 1;
      if (send?.at === at) left.shift();
      await this.#moment(at, send?.at === at ? send : undefined);
      const difference = await this.#difference();
      if (difference) break;
    }
    return this.#judged();
  }

  /** One thing happens, and all that comes of it. */
  async #moment(at: number, send: Send | undefined): Promise<void> {
    const before = (await this.#durable.record)?.iteration ?? 0;
    const event = send && { type: send.type, outside: this.#moments };
    await this.#durable.moveTo(at, event && { id: send.id, ...event });
    // What a crash made unknown comes before what it found untaken.
    await this.#tellUnknown(at, before);
    await this.#live.moveTo(at);
    if (event) await this.#live.send(event);
    await this.#tellUnknown(at);
  }

  async #tellUnknown(at: number, most = Number.POSITIVE_INFINITY): Promise<void> {
    const told = this.#durable.unknown.filter(({ after }) => after <= most);
    for (const each of told) {
      this.#durable.unknown.splice(this.#durable.unknown.indexOf(each), 1);
      this.#unbegun.add(each.name);
      if (await this.#live.makeUnknown(each.name, at)) this.#unknown += 1;
    }
  }

  async #judged(): Promise<Played> {
    const { calls, crashes } = this.#durable;
    const { excepted, end } = this.#live;
    const difference = await this.#difference();
    const complaints = [
      ...this.#begunTwice(),
      ...(excepted ? [] : [...(difference ? [difference] : []), ...this.#otherCalls()]),
    ];
    const taken = `the run took\n${this.#durable.trace.join('\n')}\nand the actor\n${this.#live.trace.join('\n')}`;
    return {
      ...{ crashes, excepted, calls: calls.size, moments: this.#moments, unknown: this.#unknown, status: end.status },
      complaints: complaints.length === 0 ? [] : [...complaints, taken],
    };
  }

  async #difference(): Promise<string | undefined> {
    const [is, should] = [await this.#durable.end(), this.#live.end];
    const [found, wanted] = [JSON.stringify(is), JSON.stringify(should)];
    if (found === wanted || (is.status === 'error' && should.status === 'error')) return undefined;
    return `the state after moment ${this.#moments} is\n${found}\ninstead of\n${wanted}`;
  }

  #begunTwice(): string[] {
    const begun = [...this.#durable.calls.values()];
    return begun.flatMap(({ src, starts, name }) =>
      src === 'pay' && starts > 1 ? [`${name} began ${starts} times`] : [],
    );
  }

  /** Calls that only one of the two worlds has made. */
  #otherCalls(): string[] {
    const expected = [...this.#live.calls];
    const more = [...this.#durable.calls.values()].flatMap(({ name }) => {
      const at = expected.findIndex((each) => each.name === name);
      if (at === -1) return [`${name} began, and XState does not begin it`];
      expected.splice(at, 1);
      return [];
    });
    const missing = expected.filter(({ name, startedAt, stoppedAt }) => {
      // A call that begins and is stopped within one save never begins. XState leaves running what a failed machine has begun last.
      const endedAt = stoppedAt ?? (this.#live.end.status === 'error' ? this.#live.now : undefined);
      return startedAt !== endedAt && !this.#unbegun.has(name);
    });
    return [...more, ...missing.map(({ name }) => `${name} did not begin`)];
  }
}
