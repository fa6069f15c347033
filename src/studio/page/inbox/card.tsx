import { useRef } from 'preact/hooks';
import type { AnswerView, RecordView, WaitLine } from '../../wire.ts';
import { useKeys } from '../frame/keys.ts';
import { store, useCanWrite } from '../frame/live.ts';
import { addressOf } from '../frame/route.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { span } from '../parts/amounts.ts';
import { Failed } from '../parts/empty.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { useNow } from '../parts/now.ts';
import { Copy, Mono } from '../parts/text.tsx';
import { forget, type InboxDecision, sendAnswer, sent } from './answers.ts';
import { ApprovalParts } from './approval.tsx';
import { As } from './card-parts.tsx';
import { ExactInput } from './exact-input.tsx';
import { EventParts, QuestionParts } from './question.tsx';
import { headOfStage, isGiven, type StageAnswer, stagesOfAnswers } from './stages.ts';
import { digestOf, fullerWait, resultOfExpiry, settledText, titleOf, votesShownOf, when, whereOf } from './waits.ts';
import { useWhole } from './whole-wait.ts';

interface CardProps {
  readonly wait: WaitLine;
  /** The record of its run, once it was read. */
  readonly record: RecordView | undefined;
  /** Why it is not open any more. */
  readonly over: string | undefined;
  /** Reads the list again. */
  reload(): void;
}

/** One wait: what is asked, exactly what would run, and the answer. */
export function Card(props: CardProps) {
  const { wait, record } = props;
  const box = useRef<HTMLElement>(null);
  useKeys((key) => {
    if (key !== 'a') return false;
    box.current?.focus();
    return true;
  });
  // After the answer its call is not in the record any more.
  const effect = useRef<string | undefined>(undefined);
  effect.current ??= record?.record?.openStep?.calls.find(({ callId }) => callId === wait.callId)?.effect;
  const { by } = useShared(store) ?? {};
  const [title, text] = words.effects?.[effect.current ?? ''] ?? [];
  const [own] = [useShared(sent).get(wait.id)].filter(isGiven);
  // The run may still refuse it: the card offers another answer.
  const stored = votesShownOf(wait) === '' ? record?.answers?.[wait.id]?.[0] : undefined;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: Mod+Enter answers only while the card has the focus
    <article ref={box} class="card" aria-labelledby="ask" tabIndex={0}>
      <header>
        <Where wait={wait} />
        <h1 id="ask">{own ? headOfStage(own, by) : (settledText(stored) ?? titleOf(wait))}</h1>
        <Since
          wait={wait}
          agent={record?.line.agentName || wait.agentId}
          isGiven={own !== undefined || stored !== undefined}
        />
        {record && record.line.prompt !== '' && <div class="dim">Prompt: {record.line.prompt}</div>}
      </header>
      {wait.kind === 'approval' && title !== undefined && own?.how !== 'deny' && (
        <section>
          <div class="note">
            <b>{title} </b>
            {text}
          </div>
        </section>
      )}
      <Answer key={digestOf(wait)} {...props} box={box} />
    </article>
  );
}

function Where({ wait }: { readonly wait: WaitLine }) {
  const [root = '', ...below] = whereOf(wait);
  const [tool] = wait.tool === undefined ? [] : below.splice(-1);
  return (
    <div class="faint">
      <a class="mono" href={addressOf('run', wait.rootRunId)}>
        {root}
      </a>
      {below.map((name) => (
        <span key={name}>
          {' › '}
          <a class="mono" href={addressOf('run', wait.runId)}>
            {name}
          </a>
        </span>
      ))}
      {` › step ${wait.step}`}
      {tool !== undefined && ' › '}
      {tool !== undefined && <Mono text={tool} />}
    </div>
  );
}

interface SinceProps {
  readonly wait: WaitLine;
  readonly agent: string;
  /** It is answered: its time does not matter any more. */
  readonly isGiven: boolean;
}

function Since({ wait, agent, isGiven }: SinceProps) {
  const { createdAt, dueAt } = wait;
  const now = useNow();
  const [over, strong] = resultOfExpiry(wait);
  const asks = wait.kind === 'approval' || wait.kind === 'question';
  if (isGiven) return <div class="dim">{`${agent} asked: ${titleOf(wait)}`}</div>;
  return (
    <div class="dim">
      {agent}
      {asks ? ` asked ${span(now - createdAt)} ago` : ` waits for ${span(now - createdAt)}`}
      {dueAt !== undefined && ` · ${dueAt > now ? 'expires' : 'its time was over'} ${when(dueAt)}, then `}
      {dueAt !== undefined && `${over} `}
      {dueAt !== undefined && <b>{strong}</b>}
    </div>
  );
}

interface AnswerProps extends CardProps {
  readonly box: { readonly current: HTMLElement | null };
}

/** What would run, and the controls: those of one digest, so that another input begins with none of what was typed. */
function Answer({ wait: shown, record, over, reload, box }: AnswerProps) {
  const { whole: wait, load, trouble } = useWhole(fullerWait(shown, record));
  const own = useShared(sent).get(wait.id);
  // After the run has read them they are not in its record any more.
  const seen = useRef<readonly AnswerView[]>([]);
  seen.current = record?.answers?.[wait.id] ?? seen.current;
  const [first] = seen.current;
  const now = useNow();
  const mayWrite = useShared(store)?.may.write === true;
  const isLost = own?.trouble?.code === 'ALREADY_ANSWERED';
  const isOpen = over === undefined && !own?.isStored && !own?.isSending && !isLost;
  const give = async (decision: InboxDecision) => {
    if ((await sendAnswer(shown, decision)).trouble) reload();
    box.current?.focus();
  };
  const again = () => {
    forget(wait.id);
    reload();
  };
  const canAnswer = useCanWrite() && isOpen && !isLate(wait, now);
  const parts = { canAnswer, isOpen, give, load, box };
  return (
    <>
      {own?.trouble && <Failed trouble={own.trouble} again={isLost ? undefined : again} />}
      {first && isOpen && (
        <section role="status">
          {votesShownOf(wait) === '' ? words.stages?.unread : `${settledText(first)}. ${words.stages?.vote}`}
          <Resume of={record?.resume} />
        </section>
      )}
      {(['prompt', 'question'] as const).map(
        (part) =>
          shown.long?.[part] && (
            <ExactInput
              key={part}
              title="The whole question"
              value={wait[part]}
              long={wait.long?.[part]}
              onLoad={() => load(part)}
            />
          ),
      )}
      {trouble && <Failed trouble={trouble} />}
      {wait.kind === 'approval' && (
        <ApprovalParts {...parts} wait={wait} own={own} answers={seen.current} schema={record?.forms?.[wait.id]} />
      )}
      {wait.kind === 'question' && <QuestionParts {...parts} wait={wait} />}
      {wait.kind === 'event' && <EventParts name={wait.name} eventKey={wait.key} />}
      {wait.kind === 'retry' && <Failed trouble={wait.error} />}
      {own && <Stages own={own} resume={record?.resume} />}
      {over !== undefined && !own?.isStored && <section role="status">{over}</section>}
      {(wait.kind === 'timer' || wait.kind === 'retry') && isOpen && mayWrite && (
        <footer>
          <button type="button" class="primary" disabled={!canAnswer} onClick={() => give({ how: 'wake' })}>
            {wait.kind === 'timer' ? 'Wake now' : 'Try now'}
          </button>
          <As />
        </footer>
      )}
      {isOpen && <Closed wait={wait} />}
    </>
  );
}

/** Says why there is no button. */
function Closed({ wait }: { readonly wait: WaitLine }) {
  const isAfter = isLate(wait, useNow());
  if (useShared(store)?.may.write === false) return <footer class="faint">{words.stages?.reader}</footer>;
  if (isAfter && wait.kind !== 'timer' && wait.kind !== 'retry')
    return (
      <footer class="faint">
        Its time is over: {resultOfExpiry(wait).join(' ')}
        {words.stages?.soon}
      </footer>
    );
  return null;
}

function isLate({ dueAt = Number.POSITIVE_INFINITY }: WaitLine, at: number): boolean {
  return dueAt <= at;
}

interface StagesProps {
  readonly own: StageAnswer;
  readonly resume: RecordView['resume'];
}

function Stages({ own, resume }: StagesProps) {
  if (own.trouble) return null;
  return (
    <section aria-live="polite">
      <ul class="done-steps">
        {stagesOfAnswers(own).map(({ text, isDone }) => (
          <li key={text} class={isDone ? '' : 'todo'}>
            <Glyph state={isDone ? 'ok' : 'wait'} />
            <span>{text}</span>
          </li>
        ))}
      </ul>
      {own.takenBy === undefined && <Resume of={resume} />}
      <a class="btn" href={addressOf('run', own.wait.runId)}>
        Open the run
      </a>
    </section>
  );
}

/** What takes up the run. */
function Resume({ of }: { readonly of: RecordView['resume'] }) {
  if (!of) return null;
  return (
    <div class="next">
      {of.text}
      {of.command !== undefined && (
        <pre>
          {of.command} <Copy text={of.command} />
        </pre>
      )}
    </div>
  );
}
