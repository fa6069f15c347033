// What the inbox says of each wait: pure, so that it is tested without a page.
import type { OpenWait, RecordView, WaitLine } from '../../wire.ts';
import { words } from '../frame/words.ts';
import { clockTime, span } from '../parts/amounts.ts';

/** A wait for a person to approve a call. */
export type ApprovalWait = Extract<WaitLine, { readonly kind: 'approval' }>;
/** A wait for the answer of a person. */
export type QuestionWait = Extract<WaitLine, { readonly kind: 'question' }>;

/** Returns a wait with the parts that the list had no room for, as far as the record of its run has them. */
export function fullerWait(wait: WaitLine, record: RecordView | undefined): WaitLine {
  const known = record?.waits.find(({ id }) => id === wait.id);
  if (!wait.long || !known || digestOf(known) !== digestOf(wait)) return wait;
  const { long: _, ...short } = wait;
  return { ...short, ...known } as WaitLine;
}

/** The input that an approval is for; '' for other waits. */
export function digestOf(wait: OpenWait): string {
  return wait.kind === 'approval' ? wait.digest : '';
}

/** Returns whether a wait ends only when a person acts. */
export function needsPerson(wait: WaitLine): boolean {
  return wait.kind === 'approval' || wait.kind === 'question' || (wait.kind === 'retry' && wait.needsPerson);
}

/** A row of the list: the head of a group, or a wait. */
export type WaitRow = { readonly group: string } | { readonly wait: WaitLine };

/** The rows of the inbox: what needs a person first, in each group that which ends soonest. @param isGiven whether it is answered */
export function waitRows(
  waits: readonly WaitLine[],
  isGiven: (wait: WaitLine) => boolean | undefined,
): readonly WaitRow[] {
  const groupOf = (wait: WaitLine) =>
    isGiven(wait) ? 'Answered' : needsPerson(wait) ? 'Needs you' : 'Time and events';
  return ['Needs you', 'Answered', 'Time and events'].flatMap((group) => {
    const own = waits.filter((wait) => groupOf(wait) === group);
    return own.length === 0 ? [] : [{ group }, ...own.toSorted(bySoonest).map((wait) => ({ wait }))];
  });
}

/** Compares two waits by their ends: that which ends first is first. */
export function bySoonest(a: WaitLine, b: WaitLine): number {
  // Two without an end are NaN apart, which is none.
  return (a.dueAt ?? Infinity) - (b.dueAt ?? Infinity) || a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

/** What is asked, in one line. */
export function titleOf(wait: WaitLine): string {
  switch (wait.kind) {
    case 'approval':
      return wait.prompt || `Run ${wait.tool ?? 'this call'}?`;
    case 'question':
      return `“${wait.question}”`;
    case 'event':
      return `${wait.name} · key ${wait.key}`;
    case 'limit':
      return wait.rule ?? wait.model;
    case 'timer':
      return wait.dueAt === undefined ? 'sleep' : `sleep until ${when(wait.dueAt)}`;
    case 'retry':
      return `The model is away · failures: ${wait.failures}`;
    case 'child':
      return `run ${wait.childRunId}`;
  }
}

/** The runs from the root to the wait, and its tool. */
export function whereOf({ path, runId, tool }: WaitLine): readonly string[] {
  const [root = { runId }, ...below] = path;
  const names = below.map((step) => step.agentId ?? step.runId);
  return [root.runId, ...names, ...(tool === undefined ? [] : [tool])];
}

/** How many votes it needs and has; '' for one that needs a single person. */
export function votesShownOf(wait: WaitLine): string {
  const { quorum = 1, votes = [] } = wait.kind === 'approval' || wait.kind === 'question' ? wait : {};
  return quorum > 1 ? `needs ${quorum}, ${votes.length} given` : '';
}

/** Who gave a vote, when, and which one: an approval, or an answer. */
export function voteText(vote: (ApprovalWait['votes'] | NonNullable<QuestionWait['votes']>)[number]): string {
  const { by, at } = vote;
  const what = 'value' in vote ? `answered ${JSON.stringify(vote.value)}` : 'approved';
  const note = 'note' in vote && vote.note ? `: ${vote.note}` : '';
  return `${personText(by)} ${what} at ${clockTime(at)}${note}`;
}

const ends: { readonly [kind in WaitLine['kind']]?: string } = {
  approval: 'expires in',
  question: 'expires in',
  event: 'gives up in',
  retry: 'tries again in',
};

/** Its kind, and when it ends. */
export function dueOfWait({ kind, dueAt }: WaitLine, now: number): string {
  if (dueAt === undefined) return `${kind} · no time limit`;
  const left = dueAt - now;
  return left <= 0 ? `${kind} · its time is over` : `${kind} · ${ends[kind] ?? 'in'} ${coarse(left)}`;
}

/** A duration without its small parts: `23 h`. */
function coarse(ms: number): string {
  return ms >= 4 * 3_600_000 && ms < 86_400_000 ? `${Math.floor(ms / 3_600_000)} h` : span(ms);
}

/** A time of day, with its day if that is not today. */
export function when(at: number, now = Date.now()): string {
  const day = (time: number) => new Date(time).toDateString();
  const text = new Date(at).toLocaleTimeString('en-GB').slice(0, 5);
  if (day(at) === day(now)) return text;
  return day(at) === day(now + 86_400_000) ? `tomorrow ${text}` : clockTime(at, now);
}

/** What becomes of a wait whose time is over, and the words of it that matter most. */
export function resultOfExpiry(wait: WaitLine): readonly string[] {
  return words.expiry?.[wait.kind === 'approval' ? wait.onExpiry : wait.kind] ?? [];
}

/** How a wait ended, as a head says it. */
export function endWord(how: string): string | undefined {
  const word = words.ends?.[how];
  return word && word.charAt(0).toUpperCase() + word.slice(1);
}

/** How a wait ended, as a record or an error of the server has it: `Approved by ada at 12:04`. */
export function settledText(settled: unknown): string | undefined {
  if (typeof settled !== 'object' || settled === null) return undefined;
  const { how, by, at, note } = settled as { readonly [field: string]: unknown };
  const word = typeof how === 'string' ? endWord(how) : undefined;
  if (word === undefined) return undefined;
  const person = personText(by);
  return `${word}${person === '' ? '' : ` by ${person}`}${typeof at === 'number' ? ` at ${when(at)}` : ''}${note ? `: ${note}` : ''}`;
}

/** The name of a person, else its id; '' for none. */
export function personText(by: unknown): string {
  const { id, name } = (by ?? {}) as { readonly id?: unknown; readonly name?: unknown };
  return [name, id].find((text): text is string => typeof text === 'string' && text !== '') ?? '';
}

/** Why a wait that was shown is not open any more, as the record proves. */
export function overText({ record, line, missing }: RecordView, waitId: string): string {
  const said = settledText(settledIn(record, waitId));
  if (said !== undefined) return `${said}.`;
  if (line.state === 'ok' || line.state === 'fail' || line.state === 'cut') return `The run has ended: ${line.where}.`;
  return missing ?? words.stages?.noWait ?? '';
}

/** How a wait ended, as the record of its run has it. */
export function settledIn(record: RecordView['record'], waitId: string): { readonly how?: unknown } | undefined {
  const { waiting } = (record?.raw?.value ?? {}) as { readonly waiting?: { readonly settled?: unknown } };
  const all: readonly unknown[] = Array.isArray(waiting?.settled) ? waiting.settled : [];
  return all.find((each): each is object => (each as { readonly id?: unknown } | null)?.id === waitId);
}
