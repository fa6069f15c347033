import {
  type CheckpointStore,
  createExecutor,
  defineTool,
  defineWorkflow,
  type Executor,
  type RunCheckpoint,
  type RunEvent,
  step,
  type Tool,
  type Workflow,
} from 'pawl';
import type { AnyActorLogic } from 'xstate';
import { isOwning } from '../../../src/store/capabilities.ts';
import type { Claim } from '../../../src/store/port.ts';
import { wrapStore } from '../../../src/store/read-only.ts';
import { Life } from '../../../src/testing/crash-test/life.ts';
import type { Clock } from '../../../src/values/clock.ts';
import { rewireWorkflow } from '../../../src/workflow/define.ts';
import { callName } from './live.ts';
import { type Asked, answerTo, type MachinePlan, machineOf, type Source, sources } from './machines.ts';

/** Where a process dies: so many writes after its boot. */
export interface Kill {
  readonly writes: number;
  readonly when: 'before' | 'after';
}

const effects = { look: 'read', put: 'idempotent', pay: 'once' } as const;
const writes = [
  ...['save', 'append', 'delete', 'outcomes.keep', 'deliveries.mark', 'claim', 'due.take', 'release'],
  ...['due.leave', 'history.end', 'commands.send', 'commands.acknowledge', 'waits.expect'],
];

const START = 1_700_000_000_000;

/** A clock that leaps: timers that were due meanwhile fire once, in their order, after the leap. */
export class LeapingClock implements Clock {
  readonly #timers = new Set<{ readonly due: number; readonly run: () => void }>();
  #passed = 0;

  now = () => START + this.#passed;
  monotonic = () => this.#passed;
  setTimeout = (run: () => void, ms: number) => {
    const timer = { due: this.#passed + Math.max(0, ms), run };
    this.#timers.add(timer);
    return timer;
  };
  clearTimeout = (timer: unknown) => void this.#timers.delete(timer as never);

  leap(ms: number): void {
    this.#passed += ms;
    const due = [...this.#timers].filter((timer) => timer.due <= this.#passed).sort((a, b) => a.due - b.due);
    for (const timer of due) if (this.#timers.delete(timer)) timer.run();
  }
}

/** A call that began, in whichever process. */
interface DurableCall {
  readonly name: string;
  readonly src: Source;
  readonly dueAt: number;
  starts: number;
}

/** A durable run of a machine, whose processes die. */
export class DurableRun {
  readonly #store: CheckpointStore;
  readonly #clock: LeapingClock;
  readonly #began: number;
  readonly #workflow: Workflow;
  readonly #runId: string;
  readonly #kills: Kill[];
  readonly #options: { readonly lingerMs: number; readonly isTogether: boolean; readonly deathsAtOnce: number };
  /** By their idempotency keys. */
  readonly calls: Map<string, DurableCall> = new Map();
  /** The `once` calls of which no process knows whether they took effect, and after how many transitions. */
  readonly unknown: { readonly name: string; readonly after: number }[] = [];
  #life = new Life();
  #executor!: Executor;
  #deployed!: Workflow;
  #underWay = 0;
  #moments = 0;
  /** Deaths of this moment. */
  #deaths = 0;
  /** What the machine has taken, as its events say it. */
  readonly trace: string[] = [];
  crashes = 0;

  constructor(
    plan: MachinePlan,
    given: { store: CheckpointStore; clock: LeapingClock; kills: readonly Kill[]; lingerMs: number; runId: string },
  ) {
    this.#store = given.store;
    this.#clock = given.clock;
    this.#began = given.clock.monotonic();
    this.#kills = [...given.kills];
    this.#runId = given.runId;
    this.#options = { lingerMs: given.lingerMs, isTogether: plan.isTogether, deathsAtOnce: plan.isTogether ? 9 : 1 };
    const tools = Object.fromEntries(sources.map((src) => [src, step(this.#toolOf(src))]));
    const machine = machineOf(plan, tools as unknown as { [name in Source]: AnyActorLogic });
    this.#workflow = defineWorkflow({ id: 'random', machine });
  }

  async start(): Promise<void> {
    this.#boot();
    const start = async () =>
      void (await this.#executor.start(this.#deployed as never, { runId: this.#runId } as never));
    void start().catch(() => {});
    await this.#settle(start);
  }

  /**
   * Lets time pass, and all that is due come.
   * @param at since the start, ms
   * @param event what comes from outside then: it is sent again where its process died before it had answered
   */
  async moveTo(
    at: number,
    event?: { readonly id: string; readonly type: string; readonly outside: number },
  ): Promise<void> {
    this.#deaths = 0;
    this.#moments += 1;
    this.#clock.leap(Math.max(0, at - this.#passed));
    let isOver = event === undefined;
    const send = async () => {
      if (isOver || !event) return;
      const { id, ...sent } = event;
      const life = this.#life;
      await this.#executor
        .control(this.#runId)
        .send(sent as never, { id })
        .catch(ended);
      if (life === this.#life) isOver = true;
    };
    void send().catch(() => {});
    await this.#settle(send, at);
    if (!isOver) throw new Error(`the event ${event?.id} was not taken`);
  }

  get #passed(): number {
    return this.#clock.monotonic() - this.#began;
  }

  get record(): Promise<RunCheckpoint | null> {
    return this.#store.load(this.#runId);
  }

  async end() {
    const record = await this.record;
    if (!record) {
      const ended = await this.#store.outcomes?.find(this.#runId);
      return ended?.status === 'ok'
        ? { status: 'done', output: ended.data }
        : { status: ended?.status ?? 'gone', error: ended?.error };
    }
    const { snapshot, timers = [], calls = {} } = record.workflow ?? {};
    return {
      status: snapshot?.status,
      value: snapshot?.value,
      context: snapshot?.context,
      timers: timers.map(({ sendId }) => sendId).sort(),
      calls: Object.keys(calls).sort(),
    };
  }

  /** Its record is gone then: a process of the next story would continue it. */
  async close(): Promise<void> {
    this.#life.end();
    await this.#bury(this.#life);
    await this.#store.delete(this.#runId);
  }

  #boot(): void {
    const kill = this.#kills[0];
    let passed = 0;
    const life = new Life(({ when }) => {
      if (!kill || when !== kill.when || passed++ < kill.writes || this.#deaths >= this.#options.deathsAtOnce)
        return undefined;
      this.#kills.shift();
      this.#deaths += 1;
      return 'crash';
    });
    this.#life = life;
    this.#deployed = rewireWorkflow(this.#workflow, { tool: (tool) => this.#mortalTool(tool, life) });
    this.#executor = createExecutor({
      store: this.#mortal(life),
      workflows: [this.#deployed],
      clock: life.clock(this.#clock),
      requireDurable: true,
      random: () => 0.5,
      defaults: { waitLingerMs: this.#options.lingerMs, dueMs: 1_000, controlMs: 1_000, maxAttempts: 99 },
      logger: { warn: () => {} },
      observers: [{ onEvent: (event) => this.#note(event, life) }],
    });
  }

  #note(event: RunEvent, life: Life): void {
    if (life.isOver || !event.type.startsWith('workflow.')) return;
    const { runId: _, seq: _seq, at: _at, ...said } = event as RunEvent & { readonly seq: number; readonly at: number };
    this.trace.push(`${this.#passed} ${JSON.stringify(said)}`);
  }

  /** Continues in another process until all that is there has come. @param again what its host does again */
  async #settle(again: () => Promise<void>, at = 0): Promise<void> {
    let revision = -1;
    for (
      let quiet = 0;
      quiet < QUIET_ROUNDS || this.#passed < at + LATE_MS * (1 + this.crashes) + ROUND_MS * this.#moments;
    ) {
      await this.#rest();
      const isDead = this.#life.isOver;
      if (isDead) {
        await this.#reboot();
        void again().catch(() => {});
      } else this.#clock.leap(ROUND_MS);
      await this.#rest();
      const now = (await this.record)?.revision ?? -2;
      quiet = isDead || now !== revision ? 0 : quiet + 1;
      revision = now;
    }
  }

  async #reboot(): Promise<void> {
    const life = this.#life;
    this.crashes += 1;
    this.trace.push(`${this.#passed} died ${JSON.stringify(life.diedAt)}`);
    await this.#bury(life);
    const record = await this.record;
    for (const { name, state, effect, input } of record?.openStep?.calls ?? []) {
      const call = callName(name, input);
      if (effect === 'once' && state === 'started') this.unknown.push({ name: call, after: record?.iteration ?? 0 });
    }
    this.#boot();
    void this.#executor.recover({ maxAttempts: 99 }).catch(() => {});
  }

  /** As after the end of its leases, without the wait. */
  async #bury(life: Life): Promise<void> {
    await life.settle();
    if (isOwning(this.#store))
      for (const claim of life.claims.values()) await this.#store.release(claim).catch(() => {});
  }

  /** Lets all happen that needs no time. */
  async #rest(): Promise<void> {
    for (let turns = 0; turns < QUIET_TURNS; turns++) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.#underWay > 0) turns = 0;
    }
  }

  #mortal(life: Life): CheckpointStore {
    return wrapStore(this.#store, (name, call) => async (...args) => {
      const isWrite = writes.includes(name);
      if (isWrite) await life.pass('before', name);
      const answer = await life.reach(() => {
        const answered = (call(...args) as Promise<unknown>).then((value) => noteClaims(life, { name, args, value }));
        const asked = this.#counted(answered);
        life.track(asked);
        return asked;
      });
      if (isWrite) await life.pass('after', name);
      return answer;
    });
  }

  async #counted<T>(work: Promise<T>): Promise<T> {
    this.#underWay += 1;
    return work.finally(() => {
      this.#underWay -= 1;
    });
  }

  #toolOf(src: Source): Tool {
    return defineTool({
      name: src,
      description: '',
      input: { type: 'object' },
      effect: effects[src],
      timeoutMs: 2 ** 31 - 1,
      execute: (asked, { idempotencyKey }) => this.#answer(src, asked as unknown as Asked, idempotencyKey),
    }) as unknown as Tool;
  }

  #mortalTool(tool: Tool, life: Life): Tool {
    const execute: Tool['execute'] = async (input, context) => life.reach(() => tool.execute(input, context));
    return Object.create(tool, { execute: { value: execute, enumerable: true } }) as Tool;
  }

  /** Its answer comes at its time, in whichever process; an answer that is late already comes a moment later. */
  async #answer(src: Source, asked: Asked, key: string): Promise<unknown> {
    const { ms, output, code } = answerTo(src, asked, this.#options.isTogether);
    const now = this.#clock.monotonic();
    const isAgain = this.calls.has(key);
    const call = this.calls.get(key) ?? { name: callName(src, asked), src, dueAt: now + ms, starts: 0 };
    call.starts += 1;
    this.trace.push(`${this.#passed} begins ${call.name} ${ms}`);
    this.calls.set(key, call);
    const left = Math.max(isAgain && ms > 0 ? 1 : 0, call.dueAt - now);
    const { promise, resolve } = Promise.withResolvers<void>();
    if (left > 0) this.#life.clock(this.#clock).setTimeout(resolve, left);
    else resolve();
    await promise;
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    return output;
  }
}

/** So late is what a process does that continues after a crash. One that takes a run which rests looks each round. */
const LATE_MS = 3_000;
/** So many rounds without a new save are quiet: what is due has been taken. */
const QUIET_ROUNDS = 4;
const QUIET_TURNS = 8;
const ROUND_MS = 1_300;

/** An event for a run that has ended is refused. */
function ended(error: { readonly code?: string }): void {
  if (error.code !== 'RUN_NOT_FOUND') throw error;
}

function noteClaims(
  life: Life,
  { name, args, value }: { name: string; args: readonly unknown[]; value: unknown },
): unknown {
  const given =
    name === 'due.take'
      ? (value as { claims: readonly Claim[] }).claims
      : name === 'claim' && value
        ? [value as Claim]
        : [];
  for (const claim of given) life.claims.set(claim.runId, claim);
  if (name === 'release' || (name === 'due.leave' && value)) life.claims.delete((args[0] as Claim).runId);
  return value;
}
