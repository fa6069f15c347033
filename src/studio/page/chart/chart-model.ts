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
  /** The model has answered without calls of tools. */
  readonly hasAnswered: boolean;
}

/** A run before its first event. */
export function unseen(phases = 0): ChartFacts {
  return { phases, done: 0, visits: {}, at: '', last: '', hasAnswered: false };
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
  const before = facts.phases > 0 && facts.at !== 'between-phases' ? went(facts, 'between-phases') : facts;
  return entered(went(before, stage), `${stage}.entering`);
}

const nextIn = new Map<string, string[]>();
for (const link of loopLinks) {
  const [from = '', to = ''] = link.split('>');
  nextIn.set(from, [...(nextIn.get(from) ?? []), to]);
}

/** The shortest way in the loop: what lies between two states that events prove, was gone through. */
export function wayTo(from: string, to: string): readonly string[] {
  const ways: string[][] = [[from]];
  const seen = new Set([from]);
  for (const way of ways) {
    const end = way.at(-1) ?? '';
    if (end === to) return way.slice(1);
    for (const next of nextIn.get(end) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      ways.push([...way, next]);
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
function turned(facts: ChartFacts): ChartFacts {
  const checked = facts.hasAnswered ? reached(reached(facts, 'checking-output'), 'entering') : facts;
  const inLoop = loopState(checked);
  if (inLoop === 'calling-model') return checked;
  const ready = inLoop === 'landing' || inLoop === 'calling-tools' ? reached(checked, 'entering') : checked;
  return { ...reached(ready, 'calling-model'), hasAnswered: false };
}

/** The errors of a limit. */
const limits: ReadonlySet<string> = new Set(['STEP_LIMIT', 'TOOL_LOOP']);

/** How the loop came to its end, if that is known. A cancel or a shutdown takes the run out of any state. */
function stopped(facts: ChartFacts, status: string, code = ''): ChartFacts {
  const known = loopState(facts);
  if (known === '') return facts;
  if (status === 'ok') return reached(facts, 'answered');
  if (code === 'OUTPUT_INVALID') return reached(reached(facts, 'checking-output'), 'failed');
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

/** Returns the facts after one more event. Events that say nothing of a state change nothing. */
export function afterEvent(facts: ChartFacts, event: JournalEvent): ChartFacts {
  switch (event.type) {
    case 'run.started':
    case 'run.resumed':
      return resolved({ ...facts, hasAnswered: false });
    case 'phase.skipped':
      return { ...facts, phases: Math.max(facts.phases, event.index + 1), done: event.index + 1 };
    case 'phase.started':
      return begun({ ...facts, phases: Math.max(facts.phases, event.index + 1), done: event.index });
    case 'phase.done': {
      const end = loopState(facts) === 'entering' ? 'exhausted' : 'answered';
      const over = left(reached(facts, end), 'between-phases');
      return { ...over, done: event.index + 1, hasAnswered: false };
    }
    case 'step.started':
      return turned(facts);
    case 'step.snapshot':
      return reached(turned(facts), 'landing');
    case 'tool.started':
    case 'tool.done':
      return event.type === 'tool.done' && event.isLate ? facts : atTools(facts);
    case 'wait.opened':
      if (event.wait.kind === 'retry') return facts;
      return atTools(loopState(facts) === 'landing' ? reached(facts, 'judging-calls') : facts);
    case 'run.waiting':
      return reached(facts, 'waiting');
    case 'step.done':
      return stepDone(facts, event.tools.length);
    case 'run.ended':
      return ended(facts, event.status, event.error?.code);
    default:
      return facts;
  }
}

function atTools(facts: ChartFacts): ChartFacts {
  const known = loopState(facts);
  return known === 'calling-model' ? reached(reached(facts, 'landing'), 'calling-tools') : reached(facts, 'calling-tools');
}

function stepDone(facts: ChartFacts, tools: number): ChartFacts {
  if (tools === 0) {
    const landed = loopState(facts) === 'landing' ? facts : reached(turned(facts), 'landing');
    return { ...landed, hasAnswered: true };
  }
  const known = loopState(facts);
  return reached(known === 'calling-tools' || known === 'waiting' ? facts : atTools(facts), 'entering');
}

/** Returns what the record of a run proves: its last save, and nothing of the time after it. */
export function factsOfRecord({ record, waits, line, result }: RecordView): ChartFacts {
  const phases = record?.phases ?? [];
  const done = phases.filter((phase) => phase.isDone).length;
  const facts: ChartFacts = { ...unseen(phases.length), done };
  if (result) return { ...facts, visits: { settled: 1 }, at: 'settled' };
  if (!record) return facts;
  const stage = stageOf(facts);
  const isAtTools = record.openStep !== undefined;
  const name = waits.length > 0 && line.state !== 'run' ? 'waiting' : isAtTools ? 'calling-tools' : 'entering';
  const visits: Record<string, number> = { resolving: Math.max(1, record.attempts), resolved: 1, [stage]: 1 };
  for (const [index] of phases.slice(0, done).entries()) visits[`phase(${index})`] = 1;
  if (phases.length > 0) visits['between-phases'] = done + 1;
  // Steps of earlier phases were made in their own loops.
  const steps = phases.length > 0 ? 0 : record.iteration;
  for (const state of ['entering', 'calling-model', 'landing']) visits[`${stage}.${state}`] = steps + (isAtTools ? 1 : 0);
  visits[`${stage}.entering`] = steps + 1;
  visits[`${stage}.${name}`] ||= 1;
  return { ...facts, visits, at: `${stage}.${name}` };
}

/** Returns the ids of the states that were entered, in the order of their first visit. */
export function seenStates({ visits }: ChartFacts): readonly (readonly [id: string, count: number])[] {
  return Object.entries(visits).filter(([, count]) => count > 0);
}

