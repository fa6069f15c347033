import type { ListedWait, OpenWait } from '../../index.ts';
import { nameOfWait } from '../../run/waits/wait.ts';
import { oneLine } from './failure.ts';
import { duration } from './format.ts';
import type { Output } from './output.ts';
import { lineFor } from './shell-words.ts';
import { field } from './table.ts';

/** The most characters of an input or a detail on the screen; `--json` has all of it. */
const SHOWN_CHARS = 2_000;

/** The most characters of an id that a command needs: the ids of the waits of a run differ in their first ones. */
const ID_CHARS = 8;

/** Returns whether a person can answer a wait with a command. */
export function isForPerson({ kind }: OpenWait): boolean {
  return kind === 'approval' || kind === 'question';
}

/** Describes an open wait as lines: what is asked, with which input, who has voted, until when. Nothing is cut without a word. */
export function describeWait(wait: OpenWait, now: number): string[] {
  const said = (name: string, value: unknown) => (value === undefined ? [] : [line(name, value)]);
  const ends = said('until', wait.dueAt === undefined ? undefined : untilWords(wait.dueAt, now));
  switch (wait.kind) {
    case 'approval': {
      const votes = wait.votes.map(({ by, note }) => `${by.id || 'a person'}${note ? ` (${note})` : ''}`).join(', ');
      const quorum =
        wait.quorum === 1 ? undefined : `${wait.votes.length} of ${wait.quorum}${votes ? `: ${votes}` : ''}`;
      return [
        ...said('call', wait.tool),
        ...said('prompt', wait.prompt),
        ...said('input', wait.input),
        ...said('detail', wait.detail),
        ...said('votes', quorum),
        ...said('digest', wait.digest),
        ...ends,
      ];
    }
    case 'question':
      return [
        ...said('question', wait.question),
        ...said('options', wait.options),
        ...said('schema', wait.schema),
        ...said('votes', votesLine(wait)),
        ...ends,
      ];
    case 'event':
      return [...said('event', wait.name), ...said('key', wait.key), ...ends];
    case 'child':
      return [...said('run', wait.childRunId), ...ends];
    case 'retry':
      return [...said('error', wait.error.message), ...said('failures', String(wait.failures)), ...ends];
    case 'limit':
      return [...said('model', wait.model), ...said('rule', wait.rule), ...ends];
    default:
      return ends;
  }
}

/** How many persons must give the same answer, and what they have said; undefined where one person answers. */
function votesLine({ quorum = 1, votes = [] }: Extract<OpenWait, { kind: 'question' }>): string | undefined {
  if (quorum === 1) return undefined;
  const given = votes.map(({ by, value }) => `${by.id}: ${JSON.stringify(value)}`).join(', ');
  return `${quorum} must agree${given && `; ${given}`}`;
}

function line(name: string, value: unknown): string {
  const text = oneLine(typeof value === 'string' ? value : JSON.stringify(value));
  if (text.length <= SHOWN_CHARS) return field(name, text);
  return field(
    name,
    `${text.slice(0, SHOWN_CHARS).toWellFormed()}… (${text.length - SHOWN_CHARS} more characters; --json has all)`,
  );
}

/** Returns until when something waits, as a part of a line. @param dueAt wall clock, ms */
export function untilWords(dueAt: number, now: number): string {
  const date = new Date(dueAt);
  const day = Number.isNaN(date.getTime()) ? String(dueAt) : date.toISOString();
  return dueAt <= now ? `${day}, now` : `${day}, in ${duration(dueAt - now)}`;
}

/** Returns the commands that answer a wait. @param option the store, as an option */
export function commandsFor(wait: OpenWait & { readonly runId: string }, option: string): string[] {
  const at = [wait.runId, wait.id.slice(0, ID_CHARS)];
  if (wait.kind === 'approval') return [lineFor('approve', at, option), lineFor('deny', at, ` --reason "…"${option}`)];
  if (wait.kind !== 'question') return [];
  return [wait.runId.startsWith('-') ? `${lineFor('answer', at, option)} "…"` : lineFor('answer', at, ` "…"${option}`)];
}

/** A run that waits, when its process ends. */
export interface WaitingRun {
  readonly runId: string;
  readonly waits: readonly ListedWait[];
  /** The commands of which one answers each wait; none = no person is asked. */
  readonly answers: readonly string[];
  /** The command that opens a page in which a person can answer. */
  readonly page: string;
  /** The command that continues the run then. */
  readonly resume: string;
}

/** Says what a run waits for, and the two steps: the commands that answer, then the one that continues. */
export function sayWaiting(output: Output, { runId, waits, answers, page, resume }: WaitingRun): void {
  const what = waits.map(nameOfWait).join(', ') || 'something';
  output.say(`pawl: run ${oneLine(runId)} waits for ${oneLine(what)}; it is recorded`);
  if (answers.length === 0) {
    output.say(`when the wait is over, continue with: ${resume}`);
    return;
  }
  for (const wait of waits)
    if (isForPerson(wait)) for (const asked of describeWait(wait, Date.now())) output.say(`   ${asked}`);
  output.say(`1. answer with ${answers.length === 1 ? 'this command' : 'one of these commands'}:`);
  for (const command of answers) output.say(`     ${command}`);
  output.say(`   or in a page: ${page}`);
  output.say('2. then continue the run with:');
  output.say(`     ${resume}`);
}
