import type { RunEvent, RunEventBody } from '../../../run/events/body.ts';
import { callOf, inputOf } from '../../../run/open-step.ts';
import type { Progress } from '../../../run/progress.ts';
import { isAtRest } from '../../../run/waits/model-waits.ts';
import { isForModel, type Person, type SettledWait, type Vote, votesFor, type Wait } from '../../../run/waits/wait.ts';
import { voteKind } from '../../../run/waits/wait-answer.ts';
import { notInTime, waitsOf } from '../../../run/waits/wait-rules.ts';

/** What a save says besides: an event, and a name that each try of the save gives it. */
export interface ToldPart {
  readonly name: string;
  readonly body: RunEventBody;
}

/** What a save says, before and after the events that wait for it: a wait is over before its call has a result. */
export interface SaidBySave {
  readonly first: readonly ToldPart[];
  readonly last: readonly ToldPart[];
}

type StateOfRun = Pick<Progress, 'waiting' | 'openStep' | 'outcome' | 'parked' | 'workflow'>;

/** The events that come with the save of the state that they report: a process may die right after a save. */
const ofSave = new Set<RunEventBody['type']>([
  ...(['wait.opened', 'wait.answered', 'wait.expired', 'wait.withdrawn', 'run.parked', 'run.ended'] as const),
]);

/** The state of a run as its journal has it: its open waits, whether it waits, is parked, or has ended. */
export class ToldState {
  #waits: ReadonlyMap<string, Wait>;
  #isWaiting: boolean;
  /** The run was resumed at rest, and has not said since whether it waits or works. */
  #isResumed = false;
  #isParked = false;

  /** @param record that the run continues: its journal has its state */
  constructor(record: StateOfRun | undefined) {
    this.#waits = byId(record ? waitsOf(record) : []);
    this.#isWaiting = record !== undefined && isWaiting(record);
  }

  /** Takes an event that was published. @returns whether a save says the same */
  take(event: RunEvent): boolean {
    switch (event.type) {
      case 'run.resumed':
        this.#isResumed = this.#isWaiting;
        return false;
      case 'run.woken':
        return !this.#isNow(false);
      case 'run.waiting':
        return !this.#isNow(true);
      case 'wait.answered':
        // The record of a wait for a model does not tell.
        return !isForModel(event);
      default:
        return ofSave.has(event.type);
    }
  }

  /** Notes whether the run waits. @returns whether that is news */
  #isNow(isWaiting: boolean): boolean {
    const isNews = this.#isResumed || this.#isWaiting !== isWaiting;
    this.#isWaiting = isWaiting;
    this.#isResumed = false;
    return isNews;
  }

  /** What the save of this state says. */
  news(state: StateOfRun): SaidBySave {
    const now = byId(waitsOf(state));
    const first = [...this.#waits.values()].flatMap((wait) => changeOf(wait, now.get(wait.id), state));
    const opened = [...now.values()].filter(({ id }) => !this.#waits.has(id)).map((wait) => openedIn(wait, state));
    return { first, last: [...opened, ...this.#ofRun(state)] };
  }

  /** The save of this state is stored. */
  onLanded(state: StateOfRun): void {
    this.#waits = byId(waitsOf(state));
    this.#isParked = state.parked !== undefined;
    if (isOver(state)) return;
    this.#isWaiting = isWaiting(state);
    this.#isResumed &&= this.#isWaiting;
  }

  #ofRun(state: StateOfRun): ToldPart[] {
    const { parked, outcome, waiting } = state;
    const said: ToldPart[] = [];
    if (parked && !this.#isParked) said.push({ name: 'parked', body: { type: 'run.parked', ...parked } });
    if (!isOver(state) && isWaiting(state) !== this.#isWaiting) {
      const { waits = [], wakeAt } = waiting ?? {};
      const until = wakeAt === undefined ? {} : { wakeAt };
      if (this.#isWaiting) said.push({ name: 'woken', body: { type: 'run.woken' } });
      else said.push({ name: 'waiting', body: { type: 'run.waiting', waits: waits.length, ...until } });
    }
    if (outcome) {
      const { status, output, error } = outcome;
      said.push({ name: 'ended', body: { type: 'run.ended', status, output, ...(error ? { error } : {}) } });
    }
    return said;
  }
}

function byId(waits: readonly Wait[]): ReadonlyMap<string, Wait> {
  return new Map(waits.map((wait) => [wait.id, wait]));
}

/** Most runs never wait. A workflow may wait for machine events alone. */
function isWaiting(state: StateOfRun): boolean {
  return (waitsOf(state).length > 0 || state.workflow !== undefined) && isAtRest(state);
}

/** A run that ends, or is parked, does not work again. */
function isOver({ outcome, parked }: StateOfRun): boolean {
  return outcome !== undefined || parked !== undefined;
}

function openedIn(wait: Wait, { openStep }: StateOfRun): ToldPart {
  const call = openStep && wait.callId !== undefined ? callOf(openStep, wait.callId) : undefined;
  return { name: `opened ${wait.id}`, body: { type: 'wait.opened', wait, ...(call ? { input: inputOf(call) } : {}) } };
}

/** What has become of an open wait. */
function changeOf(wait: Wait, now: Wait | undefined, state: StateOfRun): ToldPart[] {
  const { id: waitId, kind, callId } = wait;
  const facts = { waitId, kind, ...(callId === undefined ? {} : { callId }) };
  if (now) {
    const vote = voteSince(wait, now);
    if (!vote) return [];
    const { name, ...said } = vote;
    return [{ name: `${name} ${waitId}`, body: { type: 'wait.answered', ...facts, how: voteKind(kind), ...said } }];
  }
  // The model answered, or is asked again: the next wait for it is another one.
  if (isForModel(wait) && !state.outcome) return [];
  return [{ name: `over ${waitId}`, body: overBody(facts, endOf(wait, state)) }];
}

type Facts = Pick<Extract<RunEventBody, { type: 'wait.withdrawn' }>, 'waitId' | 'kind' | 'callId'>;
type End = Pick<SettledWait, 'how' | 'note'> & { readonly by?: Person | undefined };

function overBody(facts: Facts, end: End | undefined): RunEventBody {
  if (!end) return { type: 'wait.withdrawn', ...facts };
  const { how, by, note } = end;
  if (how === 'expire' && facts.kind !== 'timer') return { type: 'wait.expired', ...facts };
  return { type: 'wait.answered', ...facts, how, ...(by ? { by } : {}), ...(note === undefined ? {} : { note }) };
}

interface NewVote {
  readonly name: string;
  readonly by: Person;
  readonly note?: string;
  readonly votes: number;
  readonly wait?: Wait;
}

function voteSince(before: Wait, now: Wait): NewVote | undefined {
  if (now.kind === 'question') return answerSince(votesFor(before), votesFor(now));
  if (now.kind !== 'approval' || before.kind !== 'approval') return undefined;
  const [vote, last] = [now.votes.at(-1), before.votes.at(-1)];
  const isSame = vote?.at === last?.at && vote?.by.id === last?.by.id && now.digest === before.digest;
  if (!vote || isSame) return undefined;
  const votes = now.votes.length;
  const changed = now.digest === before.digest ? {} : { wait: now };
  const note = vote.note === undefined ? {} : { note: vote.note };
  return { name: `vote ${votes} ${now.digest}`, by: vote.by, ...note, votes, ...changed };
}

/** The answer of one person of several: it may replace an earlier one of the same person. */
function answerSince(before: readonly Vote[], now: readonly Vote[]): NewVote | undefined {
  const vote = now.find(({ by, at }) => !before.some((known) => known.by.id === by.id && known.at === at));
  return vote && { name: `vote ${vote.by.id} ${vote.at}`, by: vote.by, votes: now.length };
}

/** How a wait ended; undefined: it was withdrawn. A record names the last ends; of one before, its call tells. */
function endOf(wait: Wait, { waiting, openStep }: StateOfRun): End | undefined {
  const settled = waiting?.settled.find(({ id }) => id === wait.id);
  if (settled) return settled;
  const call = openStep && wait.callId !== undefined ? callOf(openStep, wait.callId) : undefined;
  if (!call || call.state === 'waiting') return undefined;
  const { answers, allowed, result } = call;
  switch (wait.kind) {
    case 'approval':
      if (allowed && allowed.by !== 'policy') return { how: 'approve', by: allowed.by.at(-1) };
      if (result?.type !== 'execution-denied') return undefined;
      return { how: result.reason === notInTime ? 'expire' : 'deny' };
    case 'child':
      return result && { how: 'ended' };
    default:
      return answers?.at(-1);
  }
}
