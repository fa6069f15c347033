// The line above a run, in words. What changes with the clock of the reader is a part of its own: the page writes it.
import { pageOfCode } from '../../values/error-codes.ts';
import type { AnswerView, OpenWait, RecordView, ShownWait, VerdictLine, VerdictText } from '../wire.ts';

/** What the line is made of. */
type Shown = Omit<RecordView, 'says'>;

/** Makes the line of a run: why it is where it is, who holds it, what happens next. */
export function verdictLine(view: Shown): VerdictLine {
  const line = withoutPage(view);
  const page = pageOfCode(line.name);
  return page === undefined ? line : { ...line, text: [...line.text, ` See ${page}.`] };
}

function withoutPage(view: Shown): VerdictLine {
  const { line } = view;
  const { state } = line;
  switch (state) {
    case 'you':
      return asks(view);
    case 'run':
      return { state, title: 'At work. ', text: [sentence(line.where), ' ', ...holder(view)] };
    case 'wait':
      return { state, title: 'Waits. ', text: [...ofWaits(view), ' ', ...holder(view)] };
    case 'idle':
      return { state, title: 'Interrupted. ', ...reasonOf(view), text: [`${reason(view)} ${next(view)}`] };
    case 'park':
      return {
        state,
        title: 'Parked. ',
        ...reasonOf(view),
        text: [`${reason(view)} It stays until a person unparks it.`],
      };
    case 'bad':
      return {
        state,
        title: 'Unreadable. ',
        ...reasonOf(view),
        text: [`${reason(view)} Its bytes are kept, and nothing is done.`],
      };
    default:
      return ended(view);
  }
}

/** A wait that a person ends. */
function isPersons(wait: ShownWait<OpenWait>): boolean {
  return wait.kind === 'approval' || wait.kind === 'question' || (wait.kind === 'retry' && wait.needsPerson);
}

function asks(view: Shown): VerdictLine {
  const wait = view.waits.find(isPersons);
  const given = wait && view.answers?.[wait.id]?.find(({ isLast }) => isLast);
  if (wait && given && !isVote(wait)) return answered(view, given);
  const taken = [...holder(view), ' An answer is taken up as soon as a process looks for work.'];
  const title = 'Waits for a person. ';
  if (!wait) {
    const child = view.children.find((each) => each.line?.state === 'you');
    const action = child && ({ word: 'Open it', view: 'run', id: child.runId } as const);
    return { state: 'you', title, text: ['A run below it asks. ', ...taken], ...(action ? { action } : {}) };
  }
  const what =
    wait.kind === 'approval'
      ? 'asks for approval'
      : wait.kind === 'question'
        ? 'asks a question'
        : 'waits for its model';
  return {
    state: 'you',
    title,
    ...(wait.tool === undefined ? {} : { name: wait.tool }),
    text: [
      `${wait.tool === undefined ? begun(what) : what} since `,
      { kind: 'age', at: wait.createdAt },
      '. ',
      ...taken,
    ],
    action: { word: 'Review and answer', view: 'inbox', id: wait.id },
  };
}

/** Whether other persons must answer as well. */
function isVote(wait: ShownWait<OpenWait>): boolean {
  const { quorum = 1, votes = [] } = wait.kind === 'approval' || wait.kind === 'question' ? wait : {};
  return quorum - votes.length > 1;
}

const answers = { approve: 'Approved', deny: 'Denied', answer: 'Answered', wake: 'Woken' } as const;

/** A person has answered, and the run has not read it. */
function answered(view: Shown, { how, by }: AnswerView): VerdictLine {
  const who = by ? ` by ${by.name || by.id}` : '';
  return { state: 'you', title: `${answers[how]}${who}. `, text: [...holder(view), continues(view)] };
}

function continues({ resume }: Shown): string {
  return resume ? ` ${resume.text}${resume.command === undefined ? '' : ` ${resume.command}`}` : '';
}

function ofWaits({ waits, verdict, line }: Shown): VerdictText {
  const times = waits.flatMap(({ dueAt }) => dueAt ?? []);
  const until: VerdictText =
    times.length === 0 ? [] : [', until ', { kind: 'time', at: Math.min(...times) }, ' at the latest'];
  const events = waits.flatMap((wait) => (wait.kind === 'event' ? [`event ${wait.name} · ${wait.key}`] : []));
  if (events.length > 0) return [`For ${events.slice(0, 3).join(', ')}`, ...until, '.'];
  return [sentence(verdict.verdict === 'waits' ? verdict.reason : (line.why ?? line.where))];
}

/** Who holds it. */
function holder({ owner, state, line }: Shown): VerdictText {
  if (!owner)
    return [line.owner === undefined && !state?.isLive ? 'No process holds the run.' : 'A process holds the run.'];
  const { leaseUntil } = owner;
  const lease: VerdictText = leaseUntil === undefined ? [] : [{ kind: 'lease', at: leaseUntil }];
  return [`${begun(owner.name)} holds the run`, ...lease, '.'];
}

function reason({ verdict, line }: Shown): string {
  return sentence(verdict.verdict === 'ended' ? (line.why ?? line.where) : verdict.reason);
}

function reasonOf({ verdict, line }: Shown): { readonly name?: string } {
  const name = verdict.code ?? line.code;
  return name === undefined ? {} : { name };
}

function next(view: Shown): string {
  const { verdict, resume } = view;
  if (verdict.verdict === 'resumes' && resume) return `No process works on it.${continues(view)}`;
  if (verdict.verdict === 'resumes') return 'No process works on it; the next `recover()` continues it.';
  if (verdict.verdict === 'skipped') return 'It stays until a process with its agent looks for work.';
  return verdict.needsPerson ? 'It stays as it is until a person, or a deploy, changes something.' : '';
}

function ended({ line, result }: Shown): VerdictLine {
  const { error, status = line.state } = result ?? {};
  const code = error?.code ?? line.code;
  const text = error?.message ?? line.why ?? (status === 'ok' ? 'Nothing is left to do.' : '');
  return {
    state: line.state,
    title: `Ended: ${status}. `,
    ...(code === undefined ? {} : { name: code }),
    text: [sentence(text)],
  };
}

function sentence(text: string): string {
  if (text === '') return '';
  const said = begun(text);
  return /[.!?…]$/.test(said) ? said : `${said}.`;
}

function begun(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
