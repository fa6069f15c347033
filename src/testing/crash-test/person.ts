import { createExecutor, type Executor } from '../../executor/executor.ts';
import type { Command } from '../../run/command.ts';
import { topicOf } from '../../run/identity.ts';
import { isAtRest } from '../../run/waits/model-waits.ts';
import { type Person, votesFor, type Wait } from '../../run/waits/wait.ts';
import type { MachineEvent } from '../../run/workflow/event.ts';
import { isDue } from '../../store/capabilities.ts';
import type { CheckpointStore } from '../../store/port.ts';
import { wrapStore } from '../../store/read-only.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { hasCode, toErrorData } from '../../values/error-data.ts';
import type { JsonValue } from '../../values/json.ts';
import type { EffectLedger } from './ledger.ts';

/** How a person of a crash test answers a wait. `answer` also gives the value of an event. */
export type CrashTestAnswer =
  | { readonly how: 'approve'; readonly by?: Person; readonly note?: string; readonly input?: JsonValue }
  | { readonly how: 'deny'; readonly by?: Person; readonly reason?: string }
  | { readonly how: 'answer'; readonly value: JsonValue; readonly by?: Person }
  | { readonly how: 'wake' };

/** An open wait of a run of the history. */
export type AskedWait = Wait & {
  readonly runId: string;
  /** The input of the call that waits. */
  readonly input?: JsonValue;
};

/** Gives the answer of a person to an open wait; undefined = no answer: its time passes, if it has one. */
export type CrashTestAnswers = (wait: AskedWait) => CrashTestAnswer | undefined;

/** A workflow that rests, for `events`. */
export interface RestingWorkflow {
  /** Its state, as XState writes it. */
  readonly state: JsonValue;
  readonly context: JsonValue;
  /** How many events were sent to it before. */
  readonly sent: number;
}

/** Gives the next machine event to a workflow that rests; undefined = none now. */
export type CrashTestEvents = (at: RestingWorkflow) => MachineEvent | undefined;

const LATE = { id: 'late' };
const DAY_MS = 86_400_000;
/** The most answers that one wait takes in a process. */
const VOTES = 50;

/** The wall clock and the monotonic clock of all processes of a crash test: they are moved past the time that runs wait. */
export class MovedTime {
  #ms = 0;

  /** Whether the clocks were moved: then the store's own clock is behind. */
  get isMoved(): boolean {
    return this.#ms > 0;
  }

  clock(base: Clock): Clock {
    return {
      now: () => base.now() + this.#ms,
      monotonic: () => base.monotonic() + this.#ms,
      setTimeout: (callback, ms) => base.setTimeout(callback, ms),
      clearTimeout: (timer) => base.clearTimeout(timer),
    };
  }

  moveTo(time: number, base: Clock): void {
    this.#ms = Math.max(this.#ms, time - base.now());
  }
}

/** A command that a person has sent. */
interface Sent {
  readonly waitId: string;
  readonly runId: string;
  readonly command: Command;
  isRepeated: boolean;
}

interface PersonOptions {
  readonly answers: CrashTestAnswers | undefined;
  readonly events: CrashTestEvents | undefined;
  readonly ledger: EffectLedger;
  readonly time: MovedTime;
  readonly base: Clock;
}

/**
 * The person of one history, who lives outside of its processes: answers each open wait twice, sends the same answer and another
 * one again when the wait is over, and lets time pass where no answer is given.
 */
export class HistoryPerson {
  readonly #options: PersonOptions;
  readonly #sent: Sent[] = [];
  /** How many answers the record must have, by wait. */
  readonly #given = new Map<string, number>();
  /** The last machine event, as it was sent. */
  #lastEvent: (Command & { readonly kind: 'event' }) | undefined;
  /** Why no wait ended at the last visit. */
  reason = '';

  constructor(options: PersonOptions) {
    this.#options = options;
  }

  /**
   * Looks at the runs of the history, none of which is at work.
   * @returns whether something has changed, so that a process finds a run that is due
   */
  async visit(store: CheckpointStore, runIds: readonly string[]): Promise<boolean> {
    const waits = await openWaitsIn(store, runIds);
    const { ledger, events } = this.#options;
    await this.#checkRead(store, new Set([...waits.map(({ runId }) => runId), ...(events ? [ledger.runId] : [])]));
    if (await this.#sendEvent(store)) return true;
    if (waits.length === 0) return !(await this.#isStuck(store));
    this.#checkAnswered(waits);
    const hasRepeated = await this.#repeat(store, waits);
    let hasAnswered = false;
    for (const wait of waits) if (await this.#answer(store, wait)) hasAnswered = true;
    return hasAnswered || hasRepeated || this.#letPass(waits);
  }

  /** Before a process begins: what was answered, and is over, is sent once more. */
  async begin(store: CheckpointStore, runIds: readonly string[]): Promise<void> {
    if (this.#sent.length > 0) await this.#repeat(store, await openWaitsIn(store, runIds));
    if (this.#lastEvent) await store.commands?.send(this.#options.ledger.runId, this.#lastEvent).catch(() => {});
  }

  /** Sends the next machine event to the workflow, twice. @returns whether there was one */
  async #sendEvent(store: CheckpointStore): Promise<boolean> {
    const { events, ledger } = this.#options;
    const { runId, machine } = ledger;
    const { workflow } = (events && (await store.load(runId))) ?? {};
    if (!events || !workflow || !store.commands) return false;
    const { value = null, context = null } = workflow.snapshot;
    const event = events({ state: value, context, sent: machine.sent.length });
    if (event === undefined) return false;
    const id = `event ${machine.sent.length + 1}`;
    const executor = this.#executor(store);
    try {
      for (const _ of ['once', 'again']) await executor.control(runId).send(event, { id });
    } finally {
      await executor.shutdown();
    }
    machine.sent.push(event.type);
    this.#lastEvent = { id, kind: 'event', event };
    return true;
  }

  /** Whether the workflow waits for an event that no one sends. */
  async #isStuck(store: CheckpointStore): Promise<boolean> {
    const record = await store.load(this.#options.ledger.runId);
    if (!record?.workflow || !isAtRest(record)) return false;
    const state = JSON.stringify(record.workflow.snapshot.value);
    this.reason = `the workflow waits in state ${state} for a machine event: give \`events\``;
    return true;
  }

  /** Sends late answers: the same one, and that of another person. @returns whether anything was sent */
  async #repeat(store: CheckpointStore, open: readonly AskedWait[]): Promise<boolean> {
    if (!store.commands) return false;
    const late = this.#sent.filter(({ waitId, isRepeated }) => !isRepeated && open.every(({ id }) => id !== waitId));
    for (const sent of late) {
      sent.isRepeated = true;
      const other = { id: `late-${sent.waitId}`, kind: 'answer', waitId: sent.waitId, by: LATE } as const;
      for (const command of [sent.command, { ...other, answer: { how: 'deny' } }] as const)
        await store.commands.send(sent.runId, command).catch(() => {});
    }
    return late.length > 0;
  }

  /** Answers the waits of a run that is live in this process, since its store cannot let it rest. */
  async answerHere(executor: Executor, store: CheckpointStore, runId: string): Promise<void> {
    for (let votes = 0; votes < VOTES; votes++) {
      const waits = await openWaitsIn(store, [runId]);
      for (const wait of waits) if (votesOf(wait) === this.#given.get(wait.id)) this.#given.delete(wait.id);
      const given = await Promise.all(waits.map((wait) => this.#giveHere(executor, wait)));
      if (!given.includes(true)) return;
    }
  }

  /** What a process was given, and did not record before its death, is given to the next one. */
  async #giveHere(executor: Executor, wait: AskedWait): Promise<boolean> {
    const answer = this.#decide(wait);
    if (!answer) return false;
    if (answer.how === 'approve') this.#options.ledger.onApproved(wait);
    try {
      const twice = [give(executor, wait, answer), give(executor, wait, answer)];
      await Promise.any(twice);
      this.#given.set(wait.id, votesOf(wait) + 1);
      return true;
    } catch {
      return false;
    }
  }

  async #answer(store: CheckpointStore, wait: AskedWait): Promise<boolean> {
    const answer = this.#decide(wait);
    if (!answer) return false;
    this.#note(wait, answer);
    if (wait.kind === 'event') return signal(store, wait, answer);
    const executor = this.#executor(store, wait.id);
    try {
      await give(executor, wait, answer);
      await give(executor, wait, answer);
      return true;
    } catch (error) {
      this.#given.delete(wait.id);
      if (hasCode(error, 'ALREADY_ANSWERED'))
        this.#options.ledger.complain('h', `the answer to ${nameOf(wait)} was refused although no other was given`);
      this.reason = `the answer to ${nameOf(wait)} was refused: ${toErrorData(error).message}`;
      return false;
    } finally {
      await executor.shutdown();
    }
  }

  #decide(wait: AskedWait): CrashTestAnswer | undefined {
    const { answers, ledger } = this.#options;
    if (!answers || wait.kind === 'child' || this.#given.has(wait.id) || ledger.refused.has(wait.id)) return undefined;
    return answers(wait);
  }

  #note(wait: AskedWait, { how }: CrashTestAnswer): void {
    this.#given.set(wait.id, votesOf(wait) + 1);
    if (how === 'approve') this.#options.ledger.onApproved(wait);
  }

  /** A person's executor knows neither the agent nor its models, and notes what it sends. */
  #executor(store: CheckpointStore, waitId?: string): Executor {
    const noted = wrapStore(store, (name, call) => async (...args) => {
      const [runId, command] = args as [string, Command];
      if (name === 'commands.send' && waitId !== undefined)
        this.#sent.push({ waitId, runId, command, isRepeated: false });
      return call(...args);
    });
    const { time, base } = this.#options;
    const models = () => {
      throw new TypeError('a person asks no model');
    };
    return createExecutor({ models, store: noted, clock: time.clock(base), logger: { warn: () => {} } });
  }

  /** A wait that was answered at an earlier visit must be over, or have one vote more. */
  #checkAnswered(waits: readonly AskedWait[]): void {
    const { ledger } = this.#options;
    for (const wait of waits) {
      const least = this.#given.get(wait.id);
      if (least === undefined || ledger.refused.has(wait.id)) continue;
      if (wait.kind === 'approval' && wait.votes.length >= least) this.#given.delete(wait.id);
      else ledger.complain('h', `the answer to ${nameOf(wait)} was lost: the run waits for it again`);
    }
  }

  async #checkRead(store: CheckpointStore, runIds: ReadonlySet<string>): Promise<void> {
    if (!store.commands) return;
    for (const runId of runIds) {
      const unread = (await store.commands.inbox({ runId })).map(({ command }) => command.kind);
      if (unread.includes('answer'))
        this.#options.ledger.complain('h', `run ${runId} rests with an answer that it has not read`);
      if (unread.includes('event'))
        this.#options.ledger.complain('w1', `run ${runId} rests with a machine event that it has not read`);
    }
  }

  /** Moves the clocks to the first wait that ends by itself. */
  #letPass(waits: readonly AskedWait[]): boolean {
    const times = waits.flatMap(({ dueAt }) => dueAt ?? []);
    if (times.length === 0) {
      const asked = waits.find(({ kind }) => kind !== 'child');
      this.reason ||= `${asked ? nameOf(asked) : 'the run'} has no answer, and waits without an end: give \`answers\``;
      return false;
    }
    this.#options.time.moveTo(Math.min(...times) + 1, this.#options.base);
    return true;
  }
}

/** The open waits in the records of these runs. */
async function openWaitsIn(store: CheckpointStore, runIds: readonly string[]): Promise<AskedWait[]> {
  const found: AskedWait[] = [];
  for (const runId of runIds) {
    const { waiting, openStep } = (await store.load(runId)) ?? {};
    for (const wait of waiting?.waits ?? []) {
      const call = openStep?.calls.find(({ callId }) => callId === wait.callId);
      found.push({ ...wait, runId, ...(call ? { input: call.input } : {}) });
    }
  }
  return found;
}

/** Whether a store lets runs rest; another one keeps a run that waits in its process. */
export const letsRest = (store: CheckpointStore): boolean => isDue(store);

/** The clock of the processes when nothing has moved it. */
export const baseClockOf = (clock: Clock | undefined): Clock => clock ?? systemClock;

function nameOf({ kind, tool, callId }: AskedWait): string {
  return `${kind === 'approval' ? 'the approval' : `the ${kind}`} of ${tool ? `tool ${tool}` : `call ${callId ?? '-'}`}`;
}

function votesOf(wait: AskedWait): number {
  return votesFor(wait).length;
}

async function give(executor: Executor, { id, runId }: AskedWait, answer: CrashTestAnswer): Promise<void> {
  const control = executor.control(runId);
  const { how, ...rest } = answer;
  if (how === 'approve') await control.approve(id, rest);
  else if (how === 'deny') await control.deny(id, rest);
  else if (how === 'wake') await control.wake(id);
  else {
    const { value, by } = answer as Extract<CrashTestAnswer, { how: 'answer' }>;
    await control.answer(id, value, by ? { by } : {});
  }
}

async function signal(
  store: CheckpointStore,
  { id, name, key, createdAt }: AskedWait & { readonly kind: 'event' },
  answer: CrashTestAnswer,
): Promise<boolean> {
  if (!store.waits || answer.how !== 'answer') return false;
  const signal = { topic: topicOf(name, key), id: `signal ${id}`, value: answer.value, untilMs: createdAt + DAY_MS };
  await store.waits.signal(signal);
  await store.waits.signal(signal);
  return true;
}
