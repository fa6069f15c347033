import type { OpenWait, RecordView, RunState } from '../../wire.ts';
import { span } from '../parts/amounts.ts';

/** One line on a run: why it is where it is, who holds it, what happens next. */
export interface VerdictLine {
  readonly state: RunState;
  readonly title: string;
  /** The tool that asks, or the code of the reason. */
  readonly name?: string;
  readonly text: string;
  /** The button that changes it. */
  readonly action?: { readonly word: string; readonly view: 'inbox' | 'run'; readonly id: string };
}

/** Makes the line of a run. @param now wall clock, ms */
export function verdictLine(view: RecordView, now: number): VerdictLine {
  const { line } = view;
  const { state } = line;
  switch (state) {
    case 'you':
      return asks(view, now);
    case 'run':
      return { state, title: 'At work. ', text: `${sentence(line.where)} ${holder(view, now)}` };
    case 'wait':
      return { state, title: 'Waits. ', text: `${ofWaits(view)} ${holder(view, now)}` };
    case 'idle':
      return { state, title: 'Interrupted. ', ...reasonOf(view), text: `${reason(view)} ${next(view)}` };
    case 'park':
      return {
        state,
        title: 'Parked. ',
        ...reasonOf(view),
        text: `${reason(view)} It stays until a person unparks it.`,
      };
    case 'bad':
      return {
        state,
        title: 'Unreadable. ',
        ...reasonOf(view),
        text: `${reason(view)} Its bytes are kept, and nothing is done.`,
      };
    default:
      return ended(view);
  }
}

/** A wait that a person ends. */
function isPersons(wait: OpenWait): boolean {
  return wait.kind === 'approval' || wait.kind === 'question' || (wait.kind === 'retry' && wait.needsPerson);
}

function asks(view: RecordView, now: number): VerdictLine {
  const wait = view.waits.find(isPersons);
  const taken = `${holder(view, now)} An answer is taken up as soon as a process looks for work.`;
  const title = 'Waits for a person. ';
  if (!wait) {
    const child = view.children.find((each) => each.line?.state === 'you');
    const action = child && ({ word: 'Open it', view: 'run', id: child.runId } as const);
    return { state: 'you', title, text: `A run below it asks. ${taken}`, ...(action ? { action } : {}) };
  }
  const what =
    wait.kind === 'approval'
      ? 'asks for approval'
      : wait.kind === 'question'
        ? 'asks a question'
        : 'waits for its model';
  const since = `${what} since ${span(now - wait.createdAt)}.`;
  return {
    state: 'you',
    title,
    ...(wait.tool === undefined ? {} : { name: wait.tool }),
    text: `${wait.tool === undefined ? sentence(since.slice(0, -1)) : since} ${taken}`,
    action: { word: 'Review and answer', view: 'inbox', id: wait.id },
  };
}

function ofWaits({ waits, verdict, line }: RecordView): string {
  const times = waits.flatMap(({ dueAt }) => dueAt ?? []);
  const until =
    times.length === 0 ? '' : `, until ${new Date(Math.min(...times)).toLocaleString('en-GB')} at the latest`;
  const events = waits.flatMap((wait) => (wait.kind === 'event' ? [`event ${wait.name} · ${wait.key}`] : []));
  if (events.length > 0) return `For ${events.slice(0, 3).join(', ')}${until}.`;
  return verdict.verdict === 'waits' ? sentence(verdict.reason) : sentence(line.why ?? line.where);
}

/** Who holds it. */
function holder({ owner, state, line }: RecordView, now: number): string {
  if (!owner)
    return line.owner === undefined && !state?.isLive ? 'No process holds the run.' : 'A process holds the run.';
  const { leaseUntil } = owner;
  const lease = leaseUntil === undefined || leaseUntil < now ? '' : `, its lease lasts ${span(leaseUntil - now)}`;
  return `${sentence(`${owner.name} holds the run${lease}`)}`;
}

function reason({ verdict, line }: RecordView): string {
  return sentence(verdict.verdict === 'ended' ? (line.why ?? line.where) : verdict.reason);
}

function reasonOf({ verdict, line }: RecordView): { readonly name?: string } {
  const name = verdict.code ?? line.code;
  return name === undefined ? {} : { name };
}

function next({ verdict }: RecordView): string {
  if (verdict.verdict === 'resumes') return 'No process works on it; the next `recover()` continues it.';
  if (verdict.verdict === 'skipped') return 'It stays until a process with its agent looks for work.';
  return verdict.needsPerson ? 'It stays as it is until a person, or a deploy, changes something.' : '';
}

function ended({ line, result }: RecordView): VerdictLine {
  const { error, status = line.state } = result ?? {};
  const code = error?.code ?? line.code;
  const text = error?.message ?? line.why ?? (status === 'ok' ? 'Nothing is left to do.' : '');
  return {
    state: line.state,
    title: `Ended: ${status}. `,
    ...(code === undefined ? {} : { name: code }),
    text: sentence(text),
  };
}

function sentence(text: string): string {
  if (text === '') return '';
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
