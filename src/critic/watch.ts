import { type ActorRefFrom, type AnyActorRef, createActor, fromPromise, type InspectionEvent } from 'xstate';
import {
  afterActivity,
  type CriticAnswer,
  type CriticContext,
  type CriticEmitted,
  type CriticQuestion,
  makeCriticMachine,
  nextLook,
} from '../../machines/critic.ts';
import { callsGivenTo, giveCalls } from '../model/given-calls.ts';
import type { Clock } from '../values/clock.ts';
import { PortTimeoutError } from '../values/errors.ts';
import { isObject, type JsonObject } from '../values/json.ts';
import { type CriticJudgement, failedJudgement, judgementOf } from './checked-decision.ts';
import type { Escalator, EscalatorState } from './escalator.ts';
import type { Activity, CriticHandle, SupervisedRun } from './port.ts';

/** What all watches of one critic share. */
interface WatchConfig {
  readonly escalator: Escalator;
  readonly idleMs: number;
  readonly backstopMs: number;
  readonly askTimeoutMs: number;
  readonly inspect?: (event: InspectionEvent) => void;
}

/** How many of the last messages an escalator gets. */
const TAIL = 32;

const watches = new WeakMap<AnyActorRef, Watch>();

function makeMachine() {
  return makeCriticMachine().provide({
    actors: {
      'ask-escalator': fromPromise<CriticAnswer, { question: CriticQuestion; context: CriticContext }>(
        async ({ input, self, signal }) => {
          const watch = self._parent && watches.get(self._parent);
          if (!watch) throw new Error('this actor belongs to no critic');
          return watch.ask(input.question, input.context, signal);
        },
      ),
    },
  });
}

type Machine = ReturnType<typeof makeMachine>;
let made: Machine | undefined;

function machine(): Machine {
  made ??= makeMachine();
  return made;
}

/**
 * Watches one run for its critic: gives the machine the time, and applies the machine's decisions. Most runs end before
 * their soft limit. Until then a watch is one timer and a few numbers, and an activity costs one read of the clock. The
 * actor (4 KB) is made at the first decision.
 */
export class Watch implements CriticHandle {
  readonly #runId: string;
  readonly #run: SupervisedRun;
  readonly #config: WatchConfig;
  /** The machine's initial context; the current state as long as there is no actor. */
  #begin: CriticContext;
  #actor: ActorRefFrom<Machine> | undefined;
  #timer: unknown;
  /** The last activity that the machine does not know yet. */
  #seenAt: number | undefined;
  #hasStepped = false;
  #lastTool = '';
  /** The last nudge and the completed steps at that time: the same nudge is not sent again before the next step. */
  #said: { readonly text: string; readonly step: number } | undefined;
  #outOfSteps: (() => void)[] = [];
  #isOver = false;

  constructor(runId: string, run: SupervisedRun, config: WatchConfig) {
    const { idleMs, backstopMs } = config;
    const restored = restoredState(run.saved);
    this.#runId = runId;
    this.#run = run;
    this.#config = config;
    this.#begin = {
      ...restored,
      softLimitMs: Math.max(run.softLimitMs, restored.extendedToMs),
      idleMs,
      backstopMs,
      lastActivityMs: run.elapsedMs(),
      isAlarmGiven: false,
      isOutOfSteps: false,
    };
    this.#plan();
  }

  onActivity(activity: Activity): void {
    if (this.#isOver) return;
    this.#seenAt = this.#run.elapsedMs();
    if (activity.type === 'tool') this.#lastTool = activity.name;
    if (activity.type === 'step') this.#hasStepped = true;
    // The timer is set to the backstop and must be set again. Otherwise it reads the activity when it fires.
    if (this.#context.isAlarmGiven) this.#tell();
  }

  onOutOfSteps(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    return new Promise((resolve) => {
      this.#outOfSteps.push(resolve);
      this.#awake().send({ type: 'steps.exhausted' });
    });
  }

  state(): JsonObject {
    if (!this.#isOver) this.#tell();
    return savedState(this.#context);
  }

  stop(): void {
    if (this.#isOver) return;
    this.#end();
    this.#actor?.send({ type: 'run.ended' });
  }

  /** Asks the host once, and applies the answer. Never rejects. */
  async ask(question: CriticQuestion, context: CriticContext, signal: AbortSignal): Promise<CriticAnswer> {
    const { escalator, askTimeoutMs: ms } = this.#config;
    const { clock } = this.#run;
    const state = this.#stateFor(question, context);
    const judgement = state
      ? await askEscalator(escalator, state, { ms, clock, signal, run: this.#run })
      : failedJudgement;
    return { ...judgement, at: this.#run.elapsedMs(), step: this.#run.tallies().iteration };
  }

  get #context(): CriticContext {
    return this.#actor?.getSnapshot().context ?? this.#begin;
  }

  /** Sends the noted activity to the machine. */
  #tell(): void {
    if (this.#seenAt === undefined) return;
    const seen = { at: this.#seenAt, hasStepped: this.#hasStepped };
    this.#seenAt = undefined;
    this.#hasStepped = false;
    if (this.#actor) this.#actor.send({ type: 'activity.seen', ...seen });
    else this.#begin = afterActivity(this.#begin, seen);
  }

  #awake(): ActorRefFrom<Machine> {
    this.#tell();
    if (this.#actor) return this.#actor;
    const { inspect } = this.#config;
    const actor = createActor(machine(), {
      id: `critic:${this.#runId}`,
      input: this.#begin,
      ...(inspect ? { inspect } : {}),
    });
    watches.set(actor, this);
    actor.on('*', (event) => this.#carryOut(event));
    actor.subscribe({ next: () => this.#plan(), error: () => this.#end() });
    this.#actor = actor.start();
    return actor;
  }

  /** Sets the one timer to the next time at which a decision may be due. */
  #plan(): void {
    this.#clearTimer();
    if (this.#isOver) return;
    const isAsking = this.#actor !== undefined && !this.#actor.getSnapshot().matches('watching');
    const context = this.#context;
    const at = isAsking ? context.backstopMs : nextLook(context);
    this.#timer = this.#run.clock.setTimeout(this.#look, Math.max(0, Math.ceil(at - this.#run.elapsedMs())));
  }

  readonly #look = (): void => {
    if (this.#isOver) return;
    this.#tell();
    const at = this.#run.elapsedMs();
    if (at < nextLook(this.#context)) this.#plan();
    else this.#awake().send({ type: 'time.passed', at });
  };

  #carryOut(event: CriticEmitted): void {
    if (this.#isOver) return;
    if (event.type === 'steps.raised') this.#run.raiseSteps(event.by);
    if (event.type === 'nudge.given') this.#nudge(event.text);
    if (event.type === 'steps.settled') this.#settleSteps();
    if (event.type !== 'kill.decided') return;
    this.#end();
    this.#run.kill(event.reason);
  }

  #nudge(text: string): void {
    const step = this.#run.tallies().iteration;
    const isUnheard = this.#said?.text === text && this.#said.step === step;
    this.#said = { text, step };
    if (!isUnheard) this.#run.nudge(text);
  }

  #settleSteps(): void {
    for (const resolve of this.#outOfSteps.splice(0)) resolve();
  }

  #end(): void {
    this.#isOver = true;
    this.#clearTimer();
    this.#settleSteps();
  }

  #clearTimer(): void {
    if (this.#timer !== undefined) this.#run.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #stateFor(reason: CriticQuestion, context: CriticContext): EscalatorState | undefined {
    try {
      const { iteration, maxIterations, usage } = this.#run.tallies();
      const elapsedMs = this.#run.elapsedMs();
      const idleMs = Math.max(0, elapsedMs - context.lastActivityMs);
      const { alarms, alarmsInStep, nudges, nudgedAtStep, raisedSteps, failures } = context;
      return Object.freeze({
        runId: this.#runId,
        reason,
        iterations: iteration,
        maxIterations,
        lastActivityAt: this.#run.clock.now() - idleMs,
        idleMs,
        elapsedMs,
        lastTool: this.#lastTool,
        usage,
        tail: this.#run.tail(TAIL),
        alarms,
        alarmsInStep,
        nudges,
        ...(nudgedAtStep === undefined ? {} : { nudgedAtStep }),
        raisedSteps,
        failures,
      });
    } catch {
      return undefined;
    }
  }
}

/**
 * Asks the host's escalator. Never rejects: an escalator that throws, rejects, hangs or returns an invalid answer has failed
 * and decides nothing.
 * @param limit `signal`: aborted when the answer is no longer needed
 */
function askEscalator(
  escalator: Escalator,
  state: EscalatorState,
  limit: { readonly ms: number; readonly clock: Clock; readonly signal: AbortSignal; readonly run: SupervisedRun },
): Promise<CriticJudgement> {
  const { ms, clock, signal, run } = limit;
  return new Promise((resolve) => {
    const late = new AbortController();
    giveCalls(late.signal, callsGivenTo(run));
    const settle = (judgement: CriticJudgement): void => {
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', abandon);
      resolve(judgement);
    };
    const giveUp = (reason: unknown): void => {
      settle(failedJudgement);
      late.abort(reason);
    };
    const abandon = (): void => giveUp(signal.reason);
    const timer = clock.setTimeout(
      () => giveUp(new PortTimeoutError(`the escalator did not answer within ${ms} ms`)),
      ms,
    );
    signal.addEventListener('abort', abandon);
    Promise.resolve()
      .then(() => escalator(state, late.signal))
      .then(
        (answer) => settle(judgementOf(answer)),
        () => settle(failedJudgement),
      );
  });
}

/** The numbers that survive a crash. */
const counts = ['extendedToMs', 'raisedSteps', 'alarms', 'alarmsInStep', 'nudges', 'failures', 'nudgedAtStep'] as const;
type Saved = Pick<CriticContext, (typeof counts)[number] | 'verdict'>;

const nothing: Saved = { extendedToMs: 0, raisedSteps: 0, alarms: 0, alarmsInStep: 0, nudges: 0, failures: 0 };

/** The state for a later process. A critic that has done nothing returns an empty object. */
function savedState(context: CriticContext): JsonObject {
  const { verdict } = context;
  const known = counts.filter((key) => context[key] !== undefined && context[key] !== nothing[key]);
  return {
    ...Object.fromEntries(known.map((key) => [key, context[key] as number])),
    ...(verdict === undefined ? {} : { verdict }),
  };
}

/** Reads the state of an earlier process. An invalid or incomplete state counts as a fresh start. */
function restoredState(saved: unknown): Saved {
  if (!isObject(saved)) return nothing;
  const found = counts.filter((key) => Object.hasOwn(saved, key));
  if (!found.every((key) => isCount(saved[key]))) return nothing;
  const { verdict } = saved;
  return {
    ...nothing,
    ...Object.fromEntries(found.map((key) => [key, saved[key]])),
    ...(typeof verdict === 'string' && verdict !== '' ? { verdict } : {}),
  };
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value);
}
