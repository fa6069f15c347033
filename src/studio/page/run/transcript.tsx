import { useState } from 'preact/hooks';
import type { MessageView, RecordedMessagesPage, RecordView } from '../../wire.ts';
import { pathOfApi } from '../frame/api.ts';
import { useLoaded } from '../frame/loaded.ts';
import { words as said } from '../frame/words.ts';
import { whole } from '../parts/amounts.ts';
import { Failed } from '../parts/empty.tsx';
import { fewWordsOf } from './few-words.ts';
import { placed } from './placed.ts';
import { SaidValue, Value } from './value.tsx';

/** Messages that are in the page at the same time. */
const WINDOW = 50;

/** What was said, the newest messages first in sight. */
export function TranscriptView({ view }: { readonly view: RecordView }) {
  const { runId } = view.line;
  const count = view.record?.messages ?? 0;
  const [from, setFrom] = useState(Math.max(0, count - WINDOW));
  const path = `${pathOfApi('runs', runId, 'messages')}?limit=${WINDOW}&after=${from}`;
  const { value: page, trouble, again } = useLoaded<RecordedMessagesPage>(path);
  if (trouble) return <Failed trouble={trouble} again={again} />;
  if (!page) return null;
  if (page.missing !== undefined) return <p class="pad dim">{page.missing}</p>;
  const to = from + page.items.length;
  const results = new Map(page.items.flatMap(({ results: own = [] }) => own.map((result) => [result.callId, result])));
  const asked = new Set(page.items.flatMap(({ calls = [] }) => calls.map(({ callId }) => callId)));
  const shown = page.items.filter((message) => !isAnswered(message, asked));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
    <section class="scroll" aria-label="Transcript" tabIndex={0}>
      {from > 0 && (
        <p class="pad">
          <button type="button" onClick={() => setFrom(Math.max(0, from - WINDOW))}>
            {Math.min(WINDOW, from)} earlier of {whole(from)}
          </button>
        </p>
      )}
      {shown.map((message) => (
        <Message key={message.index} message={message} runId={runId} results={results} />
      ))}
      {to < page.total && (
        <p class="pad">
          <button type="button" onClick={() => setFrom(to)}>
            Later messages
          </button>
        </p>
      )}
      <p class="pad faint">{said.stages?.own}</p>
    </section>
  );
}

type Result = NonNullable<MessageView['results']>[number];
type Results = ReadonlyMap<string, Result>;

/** A message with nothing but results of calls that stand above it. */
function isAnswered({ role, results = [], texts }: MessageView, asked: ReadonlySet<string>): boolean {
  return role === 'tool' && texts.length === 0 && results.every(({ callId }) => asked.has(callId));
}

interface MessageProps {
  readonly message: MessageView;
  readonly runId: string;
  readonly results: Results;
}

function Message({ message, runId, results }: MessageProps) {
  const { role, by, isSummary, texts, reasoning = [], files = [], calls = [], index, more } = message;
  const who = isSummary ? 'summary' : (by?.name ?? by?.id ?? role);
  const note = isSummary ? said.stages?.compacted : by ? 'steered' : `message ${index + 1}`;
  return (
    <article class="msg">
      <div class="who">
        {who}
        <small>{note}</small>
      </div>
      <div>
        {reasoning.length > 0 && (
          <details>
            <summary class="faint">Thoughts</summary>
            {placed(reasoning).map(({ place, item }) => (
              <SaidValue key={place} runId={runId} said={item} />
            ))}
          </details>
        )}
        {placed(texts).map(({ place, item }) => (
          <SaidValue key={place} runId={runId} said={item} />
        ))}
        {placed(files).map(({ place, item: { mediaType } }) => (
          <p key={place} class="faint">
            file, {mediaType}
          </p>
        ))}
        {calls.map((call) => (
          <Called key={call.callId} call={call} result={results.get(call.callId)} runId={runId} />
        ))}
        {calls.length === 0 &&
          (message.results ?? []).map((result) => <Called key={result.callId} result={result} runId={runId} />)}
        {more !== undefined && <p class="faint">and {whole(more)} more parts</p>}
      </div>
    </article>
  );
}

interface CalledProps {
  readonly call?: NonNullable<MessageView['calls']>[number];
  readonly result?: Result | undefined;
  readonly runId: string;
}

/** A call on one line; opened, its input and its result. */
function Called({ call, result, runId }: CalledProps) {
  const [isOpen, setOpen] = useState(false);
  const words = result ? fewWordsOf(result.output.value) || 'a long value' : said.stages?.noResult;
  return (
    <details class="called" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary class="tool">
        <b>{call?.name ?? result?.name ?? ''}</b>
        <span class="dim cut1">{fewWordsOf(call?.input.value)}</span>
        <span class={`cut1 ${result?.isError ? 'fail' : 'faint'}`}>→ {words}</span>
      </summary>
      {isOpen && call && <Value runId={runId} shown={call.input} />}
      {isOpen && result && <Value runId={runId} shown={result.output} />}
    </details>
  );
}
