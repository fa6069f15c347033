import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { WorkflowState } from '../../run/workflow/state.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../values/json.ts';
import type { Effect, MachineKernel, Transition } from '../../workflow/kernel.ts';
import type { Complaint } from './ledger.ts';

/** An event that the machine of a workflow took in one process, seen from outside of Pawl: between it and the machine. */
interface Take {
  /** The type of the event; `xstate.init` for the beginning. */
  readonly type: string;
  /** The snapshots before and after, as texts; '' = it had not begun. */
  readonly before: string;
  readonly after: string;
  readonly effects: readonly Effect[];
}

type Timers = WorkflowState['timers'];

/** The process in which a machine is watched. */
interface Watched {
  /** Whether runs of other workflows may send it events: then those from outside cannot be counted. */
  readonly hasSenders: boolean;
  /** Its number in the history. */
  readonly life: number;
  readonly isOver: () => boolean;
  /** Wall clock, ms. */
  readonly now: () => number;
}

/**
 * What the machine of a workflow did in the processes of one history: each event that it took, and which of them its records have. A
 * transition counts once a record has what came of it.
 */
export class MachineStory {
  /** What is broken without a comparison with the run without a crash. */
  readonly complaints: Complaint[] = [];
  /** The types of the machine events that came from outside, each event once. */
  readonly sent: string[] = [];
  /** What is recorded, over all processes, in order. */
  readonly taken: Take[] = [];
  hasSenders = false;
  readonly #lives = new Map<number, Take[]>();
  /** How many of the takes of a process are recorded, or were passed over. */
  readonly #known = new Map<number, number>();
  #state = '';
  #timers: Timers = [];

  /** Returns the machine of one process, watched. */
  watch(kernel: MachineKernel, { life, isOver, now, hasSenders }: Watched): MachineKernel {
    this.hasSenders ||= hasSenders;
    const takes = this.#lives.get(life) ?? [];
    this.#lives.set(life, takes);
    const note = (before: string, type: string, { snapshot, effects }: Transition) => {
      if (!isOver()) takes.push({ type, before, after: textOf(snapshot), effects });
    };
    return {
      restore: (snapshot) => kernel.restore(snapshot),
      settle: (snapshot) => kernel.settle(snapshot),
      begin: (input) => {
        const transition = kernel.begin(input);
        note('', 'xstate.init', transition);
        return transition;
      },
      take: (snapshot, event) => {
        const type = String(event.type);
        if (!isOver()) this.#checkTime(type, now());
        const transition = kernel.take(snapshot, event);
        note(textOf(snapshot), type, transition);
        return transition;
      },
    };
  }

  /** The store has this record of the run: the takes that lead to it are recorded. */
  onRecorded({ workflow, iteration }: RunCheckpoint): void {
    if (workflow?.snapshot.status === undefined) return;
    const [state, steps] = [textOf(workflow.snapshot), iteration - this.taken.length];
    if (steps < 0) return;
    const way = steps === 0 ? [] : this.#wayTo(state, steps);
    if (!way || (steps === 0 && state !== this.#state)) {
      const from = `transition ${this.taken.length}`;
      this.#complain('w3', `the record of transition ${iteration} does not follow from that of ${from}: ${state}`);
      return;
    }
    this.taken.push(...way);
    this.#checkTimers(way, workflow);
    this.#state = state;
    this.#timers = workflow.timers;
  }

  /** How many of the recorded events have this type. */
  countOf(type: string): number {
    return this.taken.filter((take) => take.type === type).length;
  }

  /** How often the machine itself asked for an event of this type: by timers, and by events for itself. */
  askedOf(type: string): number {
    const asked = this.taken.flatMap(({ effects }) => effects.flatMap(askedBy));
    return asked.filter((each) => each === type).length;
  }

  /** The takes of one process that lead from the last record to this state in so many steps. */
  #wayTo(state: string, steps: number): readonly Take[] | undefined {
    for (const [life, takes] of [...this.#lives].reverse()) {
      for (let at = this.#known.get(life) ?? 0; at + steps <= takes.length; at++) {
        const way = takes.slice(at, at + steps);
        const isWay = way.every(({ before }, i) => before === (way[i - 1]?.after ?? this.#state));
        if (!isWay || way.at(-1)?.after !== state) continue;
        this.#known.set(life, at + steps);
        return way;
      }
    }
    return undefined;
  }

  /** A timer may fire once its time has come. */
  #checkTime(type: string, now: number): void {
    const own = this.#timers.filter(({ event }) => event.type === type);
    if (!isTimer(type) || own.length === 0 || own.some(({ dueAt }) => dueAt <= now)) return;
    this.#complain(
      'w2',
      `the timer ${type} fired ${Math.min(...own.map(({ dueAt }) => dueAt)) - now} ms before its time`,
    );
  }

  /** A timer of a state that was active all the time is there, or has fired. */
  #checkTimers(way: readonly Take[], { timers }: WorkflowState): void {
    for (const { event } of this.#timers) {
      const type = String(event.type);
      const isThere = timers.some((timer) => timer.event.type === type) || way.some((take) => take.type === type);
      const isGone = way.some(({ effects }) => effects.some((each) => each.kind === 'cancel' && each.sendId === type));
      if (!isTimer(type) || isThere || isGone) continue;
      this.#complain('w2', `the timer ${type} was lost: it has neither fired, nor did its machine cancel it`);
    }
    for (const type of new Set(this.taken.map((take) => take.type).filter(isTimer))) {
      const [fired, set] = [this.countOf(type), this.askedOf(type)];
      if (fired > set) this.#complain('w2', `the timer ${type} was set ${set} times, and fired ${fired} times`);
    }
  }

  #complain(promise: Complaint['promise'], detail: string): void {
    this.complaints.push({ promise, detail });
  }
}

/**
 * Compares what the machine of a workflow took with the run without a crash.
 * @param mayDiffer it may have gone another way, for a reason of its own
 */
export function judgeMachine(story: MachineStory, whole: MachineStory, mayDiffer: boolean): Complaint[] {
  return [
    ...story.complaints,
    ...judgeEvents(story, whole, mayDiffer),
    ...(mayDiffer ? [] : [...judgeTimers(story, whole), ...judgeTaken(story, whole)]),
  ];
}

function judgeEvents(story: MachineStory, whole: MachineStory, mayDiffer: boolean): Complaint[] {
  return [...new Set(story.sent)].flatMap((type): Complaint[] => {
    const [taken, sent] = [story.countOf(type), countIn(story.sent, type)];
    const told = `${sent} events ${type} were sent, and the machine took ${taken}`;
    if (!story.hasSenders && taken > sent + story.askedOf(type)) return [{ promise: 'w1', detail: told }];
    const isShort = !mayDiffer && sent === countIn(whole.sent, type) && taken < whole.countOf(type);
    return isShort ? [{ promise: 'w1', detail: `${told}; without a crash it took ${whole.countOf(type)}` }] : [];
  });
}

function judgeTimers(story: MachineStory, whole: MachineStory): Complaint[] {
  return [...new Set(whole.taken.map(({ type }) => type).filter(isTimer))].flatMap((type): Complaint[] => {
    const [fired, should] = [story.countOf(type), whole.countOf(type)];
    const detail = `the timer ${type} fired ${fired} times, and ${should} times without a crash`;
    return fired === should ? [] : [{ promise: 'w2', detail }];
  });
}

/** Which of two results comes first may depend on the crash; what comes, may not. */
function judgeTaken(story: MachineStory, whole: MachineStory): Complaint[] {
  const [is, should] = [story, whole].map(({ taken }) => taken.map(({ type }) => type).sort());
  if (is?.join() === should?.join()) return [];
  return [{ promise: 'w3', detail: `the machine took ${is?.join(', ')}; without a crash ${should?.join(', ')}` }];
}

function countIn(types: readonly string[], type: string): number {
  return types.filter((each) => each === type).length;
}

/** XState names the events of `after` so. */
const isTimer = (type: string): boolean => type.startsWith('xstate.after.');

function askedBy(effect: Effect): readonly string[] {
  if (effect.kind === 'timer') return [String(effect.timer.event.type)];
  return effect.kind === 'send' ? [String(effect.event.type)] : [];
}

/** As a record has it: without fields that are undefined. */
function textOf(snapshot: JsonObject): string {
  return canonicalJson(JSON.parse(JSON.stringify(snapshot)) as JsonValue);
}
