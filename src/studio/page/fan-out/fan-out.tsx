import { useState } from 'preact/hooks';
import type { AppliedFiles, DiffLine, FanOutAnswer, FanOutView, FileAction, ProposedFile } from '../../fan-out-wire.ts';
import { pathOfApi, post, type Trouble } from '../frame/api.ts';
import { connection, store } from '../frame/live.ts';
import { useLoaded } from '../frame/loaded.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { personText } from '../inbox/waits.ts';
import { clockTime, ordinal, short, span, usd, whole } from '../parts/amounts.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Failed } from '../parts/empty.tsx';
import { escapedHtml } from '../parts/escaped.ts';
import { Glyph, glyphWords, State } from '../parts/glyph.tsx';
import { say } from '../parts/say.tsx';
import { Copy, Mono } from '../parts/text.tsx';

const POLL_MS = 1_000;

/** The answers of one fan-out, side by side. */
export function FanOutPage({ id }: { readonly id: string }) {
  const { value, trouble, again } = useLoaded<FanOutView>(pathOfApi('fan-outs', id), (view) =>
    view?.state === 'run' ? POLL_MS : undefined,
  );
  return (
    <>
      <header class="head">
        <a class="crumb" href="#/fan-outs">
          Fan-outs
        </a>
        <span class="faint">/</span>
        <h1 class="mono cut1">{value?.name ?? id}</h1>
        {value && <State state={value.state} word={`${value.answered} of ${value.models}`} />}
        <span class="dim only-l cut1">{value?.prompt ?? ''}</span>
      </header>
      {trouble && <Failed trouble={trouble} again={again} />}
      {value?.reason !== undefined && (
        <p class="pad dim">
          {words.stages?.rankedBy} {value.reason}
        </p>
      )}
      {value && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
        <section class="fan" aria-label="Answers side by side" tabIndex={0}>
          {value.answers.map((answer) => (
            <Column key={answer.modelId} id={id} answer={answer} of={value} again={again} />
          ))}
        </section>
      )}
    </>
  );
}

interface ColumnProps {
  readonly id: string;
  readonly answer: FanOutAnswer;
  /** The fan-out. */
  readonly of: FanOutView;
  again(): void;
}

function Column(props: ColumnProps) {
  const { answer, of: fanOut } = props;
  const { modelId, state, rank, text, more, error, latencyMs, inputTokens, outputTokens, files } = answer;
  return (
    <section class={`col${rank === 1 ? ' best' : ''}`} aria-label={escapedHtml(modelId)}>
      <header>
        <div>
          <Glyph state={state} />
          <b class="mono cut1">{modelId}</b>
          <span class="grow" />
          <Standing answer={answer} />
        </div>
        <div class="faint">
          {span(latencyMs)} · {short(inputTokens + outputTokens)} tokens · ${usd(answer.usd)}
        </div>
      </header>
      <Shared modelId={modelId} of={fanOut} />
      {error !== undefined && (
        <div class="find fail">
          <p class="said">{error}</p>
        </div>
      )}
      {text !== '' && (
        <div class="find">
          <p class="said">{text}</p>
          {more > 0 && (
            <p class="faint">
              {whole(more)} {words.stages?.inFile}
            </p>
          )}
          <Copy text={text} />
        </div>
      )}
      {files.map((file) => (
        <Diff key={file.path} file={file} />
      ))}
      {files.length > 0 && <Apply {...props} />}
      {fanOut.actions.map(
        (action) =>
          action.modelId === modelId && (
            <p key={action.at} class="faint pad">
              {actionText(action)}
            </p>
          ),
      )}
    </section>
  );
}

/** The places that this answer and others name, with a dot for each answer: full for one that names it. */
function Shared({ modelId, of: { answers, shared } }: { readonly modelId: string; readonly of: FanOutView }) {
  const named = shared.filter(({ modelIds }) => modelIds.includes(modelId));
  return named.map(({ place, modelIds }) => (
    <div key={place} class="find shared">
      <Mono text={place} />
      <span class="faint" role="img" aria-label={`${modelIds.length} of ${answers.length} answers name it`}>
        {answers.map((each) => (modelIds.includes(each.modelId) ? '●' : '○'))}
      </span>
    </div>
  ));
}

function Standing({ answer: { rank, state } }: { readonly answer: FanOutAnswer }) {
  if (rank !== undefined) return <span class={`nowrap ${rank === 1 ? 'ok' : 'faint'}`}>{ordinal(rank)}</span>;
  if (state === 'ok') return null;
  return <span class={`nowrap ${state}`}>{state === 'run' ? 'writing…' : glyphWords[state]}</span>;
}

const signs: { readonly [kind in DiffLine['kind']]: string } = { same: ' ', add: '+', del: '-', at: '' };

function Diff({ file: { path, change, warning, added, removed, lines, more } }: { readonly file: ProposedFile }) {
  return (
    <div class="diff">
      <div class="sec">
        <h2 class="cut1">
          {change === 'deleted' ? 'Deletes' : 'Proposes'} · {path}
        </h2>
        <span class="end nowrap">
          +{whole(added)} −{whole(removed)}
        </span>
      </div>
      {warning !== undefined && <Warning text={warning} />}
      <pre>
        {lines.map(({ kind, text }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a diff have no other name
          <span key={at} class={`l ${kind}`}>
            {signs[kind]}
            {text}
          </span>
        ))}
      </pre>
      {more > 0 && (
        <p class="faint">
          {whole(more)} {words.stages?.moreLines}
        </p>
      )}
    </div>
  );
}

/** A file that other programs execute, or obey, by themselves. */
function Warning({ text }: { readonly text: string }) {
  return (
    <p class="executable">
      <b>Read it first:</b> {text}
    </p>
  );
}

function Apply({ id, answer, again }: ColumnProps) {
  const [isAsking, setAsking] = useState(false);
  const [trouble, setTrouble] = useState<Trouble>();
  const [done, setDone] = useState<AppliedFiles>();
  const [isBusy, setBusy] = useState(false);
  const canApply = useShared(store)?.may.apply === true;
  const isLive = useShared(connection).state === 'live';
  const send = async (body: object, said: string): Promise<AppliedFiles | undefined> => {
    setBusy(true);
    const sent = await post<AppliedFiles>(pathOfApi('fan-outs', id, 'apply'), body);
    setBusy(false);
    setTrouble(sent.trouble);
    again();
    if (sent.trouble) return undefined;
    say(said);
    return sent.value;
  };
  const apply = async () =>
    setDone(await send({ modelId: answer.modelId, digest: answer.digest }, words.stages?.applied ?? ''));
  const takeBack = async () => {
    if (await send({ undo: true }, words.stages?.undone ?? '')) setDone(undefined);
  };
  const refused = trouble ?? answer.trouble;
  return (
    <div class="diff">
      {refused && <Failed trouble={refused} />}
      <div class="sec">
        {done ? (
          <>
            <span class="ok">Applied: {filesIn(done.files.length)}</span>
            <button type="button" disabled={isBusy || !isLive} onClick={takeBack}>
              Take back
            </button>
          </>
        ) : (
          <button
            type="button"
            disabled={!canApply || !isLive || isBusy || answer.trouble !== undefined || answer.digest === undefined}
            onClick={() => setAsking(true)}
          >
            Apply…
          </button>
        )}
        {!canApply && <span class="faint">{words.stages?.noApply}</span>}
      </div>
      {isAsking && (
        <Confirm
          title={`Apply what ${escapedHtml(answer.modelId)} proposes?`}
          yes="Apply"
          onYes={apply}
          onClose={() => setAsking(false)}
        >
          <ul class="files">
            {answer.files.map(({ path, change, warning }) => (
              <li key={path}>
                {change} <Mono text={path} />
                {warning !== undefined && <Warning text={warning} />}
              </li>
            ))}
          </ul>
          <p class="dim">{words.stages?.applies}</p>
        </Confirm>
      )}
    </div>
  );
}

const verbs = { apply: ['Applied', 'Applying'], 'take-back': ['Taken back', 'Taking back'] } as const;

/** Who changed files, and when: `Applied by ada at 12:04:09`. */
function actionText({ action, by, at, end }: FileAction): string {
  const [done, doing] = verbs[action];
  const open = end ? 'changed no file; asked for' : 'has no recorded end; begun';
  const who = personText(by);
  return `${end === 'done' ? done : `${doing} ${open}`}${who && ` by ${who}`} at ${clockTime(at)}`;
}

function filesIn(count: number): string {
  return count === 1 ? '1 file' : `${count} files`;
}
