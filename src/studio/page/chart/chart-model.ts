import type { JournalEvent, RecordView } from '../../wire.ts';
import { loopLinks, stagesOf } from './layout.ts';

/** What is known of the way of a run through its machine. */
export interface ChartFacts {
  /** How many phases its agent has, as far as is known; 0 = one loop. */
  readonly phases: number;
  /** How many of them are over. */
  readonly done: number;
  /** How often each state was entered, by its id: `running.entering`. */
  readonly visits: Readonly<Record<string, number>>;
  /** Where it is; '' = unknown. */
  readonly at: string;
  /** The transition that was taken last: `running.entering>running.calling-model`. */
  readonly last: string;
  /** The newest model turn that was proved; its number counts over the whole life of the run. */
  readonly step: number;
  /** The model has answered without calls of tools. */
  readonly hasAnswered: boolean;
}

/** A run before its first event. */
export function unseen(phases = 0): ChartFacts {
  return { phases, done: 0, visits: {}, at: '', last: '', step: 0, hasAnswered: false };
}

/** Returns the id of the loop that works, or worked last. */
export function stageOf({ phases, done }: ChartFacts): string {
  return stagesOf(phases)[Math.min(done, Math.max(0, phases - 1))] ?? 'running';
}

/** The name of a state in its loop; '' for one outside of the loops. */
function loopState({ at }: ChartFacts): string {
  const dot = at.lastIndexOf('.');
  return dot < 0 ? '' : at.slice(dot + 1);
}

function entered(facts: ChartFacts, id: string): ChartFacts {
  const visits = { ...facts.visits, [id]: (facts.visits[id] ?? 0) + 1 };
  return { ...facts, visits, at: id };
}

function went(facts: ChartFacts, to: string): ChartFacts {
  return { ...entered(facts, to), last: facts.at === '' ? '' : `${facts.at}>${to}` };
}

/** A process has the run: it was claimed, and its record was read. */
function resolved(facts: ChartFacts): ChartFacts {
  return went(went({ ...facts, at: '' }, 'resolving'), 'resolved');
}

/** The loop begins, or continues after a restart. */
function begun(facts: ChartFacts): ChartFacts {
  const stage = stageOf(facts);
  if (facts.at.startsWith(`${stage}.`)) return facts;
  const from = facts.at === 'resolved' || facts.at === 'between-phases' ? facts : { ...facts, at: '' };
  const before = facts.phases > 0 && from.at !== 'between-phases' ? went(from, 'between-phases') : from;
  return entered(went(before, stage), `${stage}.entering`);
}

const nextIn = new Map<string, string[]>();
for (const link of loopLinks) {
  const [from = '', to = ''] = link.split('>');
  nextIn.set(from, [...(nextIn.get(from) ?? []), to]);
}

const ways = new Map<string, readonly string[]>();

/** The shortest way in the loop: what lies between two states that events prove, was gone through. */
function wayTo(from: string, to: string): readonly string[] {
  const key = `${from}>${to}`;
  const known = ways.get(key) ?? shortestWay(from, to);
  ways.set(key, known);
  return known;
}

function shortestWay(from: string, to: string): readonly string[] {
  const open: string[][] = [[from]];
  const seen = new Set([from]);
  for (const way of open) {
    const end = way.at(-1) ?? '';
    if (end === to) return way.slice(1);
    for (const next of nextIn.get(end) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push([...way, next]);
    }
  }
  return [];
}

/** The loop has come to a state, by the shortest way. */
function reached(facts: ChartFacts, name: string): ChartFacts {
  const started = begun(facts);
  const stage = stageOf(started);
  return wayTo(loopState(started), name).reduce((before, state) => went(before, `${stage}.${state}`), started);
}

/** The loop is over: the machine takes the way to this state. */
function left(facts: ChartFacts, to: string): ChartFacts {
  const inLoop = loopState(facts) !== '';
  return went(inLoop ? { ...facts, at: stageOf(facts) } : facts, to);
}

/** A model turn begins. An answer that did not fit its schema has led back to the beginning of the loop. */
function turned(facts: ChartFacts, step: number): ChartFacts {
  if (step <= facts.step && !facts.hasAnswered && facts.at.startsWith(`${stageOf(facts)}.`)) return facts;
  const checked = facts.hasAnswered ? reached(reached(facts, 'checking-output'), 'entering') : facts;
  const inLoop = loopState(checked);
  if (inLoop === 'calling-model') return checked;
  const ready = inLoop === 'landing' || inLoop === 'calling-tools' ? reached(checked, 'entering') : begun(checked);
  return { ...reached(untold(ready, step - 1 - ready.step), 'calling-model'), step, hasAnswered: false };
}

/** Turns that the journal does not have, or no longer: those of a phase are kept once it is over. The number proves them. */
function untold(facts: ChartFacts, turns: number): ChartFacts {
  if (!(turns > 0)) return facts;
  const visits: Record<string, number> = { ...facts.visits };
  for (const name of ['entering', 'calling-model', 'landing', 'calling-tools']) {
    const id = `${stageOf(facts)}.${name}`;
    visits[id] = (visits[id] ?? 0) + turns;
  }
  return { ...facts, visits };
}

/** The errors of a limit. */
const limits: ReadonlySet<string> = new Set(['STEP_LIMIT', 'TOOL_LOOP']);

/** The errors of a model call that failed for good. */
const failures: ReadonlySet<string> = new Set([
  'MODEL',
  'MODEL_STALLED',
  'REPLY_TOO_LARGE',
  'CONTENT_REFUSED',
  'ANSWER_CUT',
  'CONTEXT_TOO_LONG',
]);

/** How the loop came to its end, if that is known. A cancel or a shutdown takes the run out of any state. */
function stopped(facts: ChartFacts, status: string, code = ''): ChartFacts {
  const known = loopState(facts);
  if (known === '') return facts;
  if (status === 'ok') return reached(facts, 'answered');
  if (code === 'OUTPUT_INVALID') return reached(reached(facts, 'checking-output'), 'failed');
  if (failures.has(code) && (known === 'entering' || known === 'calling-model'))
    return reached(turned(facts, facts.step + 1), 'failed');
  const end = limits.has(code) ? 'exhausted' : 'failed';
  return status === 'error' && wayTo(known, end).length === 1 ? reached(facts, end) : facts;
}

const outcomes: Readonly<Record<string, string>> = {
  ok: 'completing',
  interrupted: 'leaving-running',
  waiting: 'leaving-running',
};

function ended(facts: ChartFacts, status: string, code?: string): ChartFacts {
  if (facts.at === 'settled') return facts;
  return went(went(left(stopped(facts, status, code), 'ending'), outcomes[status] ?? 'failing'), 'settled');
}

/** Returns the facts before the first event that is known: without the beginning of a run, its record names the phases. */
export function factsBefore(first: JournalEvent | undefined, view: RecordView | undefined): ChartFacts {
  const phases = first?.type === 'run.started' ? [] : (view?.record?.phases ?? []);
  return { ...unseen(phases.length), done: phases.filter(({ isDone }) => isDone).length };
}

/** Returns the facts after one more event. Events that say nothing of a state change nothing. */
export function chartAfter(facts: ChartFacts, event: JournalEvent): ChartFacts {
  switch (event.type) {
    case 'run.started':
      return resolved(facts);
    case 'run.resumed':
      return resolved({ ...facts, step: event.iteration, hasAnswered: false });
    case 'phase.skipped':
      return { ...facts, phases: Math.max(facts.phases, event.index + 1), done: event.index + 1 };
    case 'phase.started':
      return begun({ ...facts, phases: Math.max(facts.phases, event.index + 1), done: event.index });
    case 'phase.done':
      return phaseDone({ ...facts, phases: Math.max(facts.phases, event.index + 1), done: event.index });
    case 'step.started':
      return turned(facts, event.step);
    case 'step.snapshot':
      return event.step > facts.step || loopState(facts) === 'calling-model'
        ? reached(turned(facts, event.step), 'landing')
        : facts;
    case 'tool.started':
    case 'tool.done':
      return event.type === 'tool.done' && event.isLate ? facts : { ...atTools(facts), step: event.step };
    case 'wait.opened':
      // The run itself waits for its model.
      if (!event.wait.callId) return facts;
      return atTools(loopState(facts) === 'landing' ? reached(facts, 'judging-calls') : facts);
    case 'run.waiting':
      return reached(facts, 'waiting');
    case 'step.done':
      return stepDone(facts, event);
    case 'run.ended':
      return ended(facts, event.status, event.error?.code);
    default:
      return facts;
  }
}

function atTools(facts: ChartFacts): ChartFacts {
  const known = loopState(facts);
  return known === 'calling-model'
    ? reached(reached(facts, 'landing'), 'calling-tools')
    : reached(facts, 'calling-tools');
}

function stepDone(facts: ChartFacts, { step, tools }: { step: number; tools: readonly string[] }): ChartFacts {
  const known = loopState(facts);
  if (tools.length === 0) {
    const landed = known === 'landing' ? facts : reached(turned(facts, step), 'landing');
    return { ...landed, hasAnswered: true };
  }
  const isThere = known === 'calling-tools' || known === 'waiting';
  const tooled = isThere ? facts : atTools(known === 'landing' ? facts : turned(facts, step));
  return { ...reached(tooled, 'entering'), step };
}

function phaseDone(facts: ChartFacts): ChartFacts {
  const end = loopState(facts) === 'entering' ? 'exhausted' : 'answered';
  const over = left(reached(facts, end), 'between-phases');
  return { ...over, done: facts.done + 1, hasAnswered: false };
}

/** Returns what the record of a run proves: the steps that are in it, and the state at which it is or would continue. */
export function chartFactsOf({ record, state, result }: RecordView): ChartFacts {
  const phases = record?.phases ?? [];
  const done = phases.filter((phase) => phase.isDone).length;
  const facts: ChartFacts = { ...unseen(phases.length), done };
  if (result) return { ...facts, visits: { settled: 1 }, at: 'settled' };
  const at = state?.name ?? '';
  const visits: Record<string, number> = {};
  if (record) visits.resolving = visits.resolved = Math.max(1, record.attempts);
  for (const index of phases.slice(0, done).keys()) visits[`phase(${index})`] = 1;
  // How many of a pipeline's steps were made in the phase that is open, the record does not say.
  if (record && phases.length === 0)
    for (const name of ['entering', 'calling-model', 'landing']) visits[`running.${name}`] = record.iteration;
  if (at !== '') visits[at] = Math.max(1, visits[at] ?? 0);
  const [stage = ''] = at.split('.');
  if (stage !== '') visits[stage] ||= 1;
  return { ...facts, visits, at };
}

/** Returns the ids of the states that were entered, in the order of their first visit. */
export function seenStates({ visits }: ChartFacts): readonly (readonly [id: string, count: number])[] {
  return Object.entries(visits).filter(([, count]) => count > 0);
}
