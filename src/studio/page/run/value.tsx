import { useEffect, useState } from 'preact/hooks';
import type { JsonValue, ShownText, ShownValue, ValuePage } from '../../wire.ts';
import { get, pathOfApi, type Trouble } from '../frame/api.ts';
import { size, whole } from '../parts/amounts.ts';
import { Failed } from '../parts/empty.tsx';
import { Copy } from '../parts/text.tsx';

/** A text is drawn up to this length; the rest comes with a click. */
const DRAWN = 16_384;

interface PieceProps {
  readonly runId: string;
  /** The query that loads the value. */
  readonly at: string;
  /** Whether it is loaded at once; else with a click. */
  readonly isAtOnce?: boolean;
  readonly bytes?: number;
  /** What is said where there is none. */
  readonly none?: string;
}

/** A value that is loaded, piece by piece: only one piece is in the page. Another value needs another key. */
export function Loaded({ runId, at, isAtOnce = false, bytes, none }: PieceProps) {
  const [page, setPage] = useState<ValuePage & { readonly from: number }>();
  const [trouble, setTrouble] = useState<Trouble>();
  const [isAll, setAll] = useState(false);
  const load = async (from: number) => {
    const answer = await get<ValuePage>(`${pathOfApi('runs', runId, 'value')}?${at}&from=${from}`);
    setTrouble(answer.trouble);
    if (!answer.trouble) setPage({ ...answer.value, from });
  };
  useEffect(() => {
    if (!isAtOnce) return;
    const timer = setTimeout(() => void load(0), 120);
    return () => clearTimeout(timer);
  }, []);
  if (trouble && none !== undefined && trouble.status === 404) return <p class="faint">{none}</p>;
  if (trouble) return <Failed trouble={trouble} again={() => void load(page?.from ?? 0)} />;
  if (!page)
    return isAtOnce ? null : (
      <button type="button" onClick={() => void load(0)}>
        Load {bytes === undefined ? 'it' : size(bytes)}
      </button>
    );
  const { text, chars, from, next } = page;
  const shown = isAll ? text : text.slice(0, DRAWN);
  return (
    <>
      <Text text={shown} />
      <p class="more">
        {shown.length < text.length && (
          <button type="button" onClick={() => setAll(true)}>
            Show {size(text.length)}
          </button>
        )}
        {from > 0 && (
          <button type="button" onClick={() => void load(0)}>
            From its beginning
          </button>
        )}
        {next !== undefined && (
          <button type="button" onClick={() => void load(Number(next))}>
            Next piece
          </button>
        )}
        {(next !== undefined || from > 0) && (
          <span class="faint">
            characters {whole(from)} to {whole(from + text.length)} of {whole(chars)}
          </span>
        )}
        <Copy text={text} name={next === undefined && from === 0 ? 'Copy' : 'Copy this piece'} />
      </p>
    </>
  );
}

function Text({ text }: { readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
    <pre class="short" tabIndex={0}>
      {text}
    </pre>
  );
}

/** A value that came with its view, or a button that loads it. */
export function Value({ runId, shown }: { readonly runId: string; readonly shown: ShownValue }) {
  const { value, at, bytes } = shown;
  if (value === undefined) return at === undefined ? null : <Loaded key={at} runId={runId} at={at} bytes={bytes} />;
  const text = inText(value);
  return (
    <>
      <Text text={text} />
      <Copy text={text} />
    </>
  );
}

/** A text that came with its view, whole or its beginning. */
export function SaidValue({ runId, said }: { readonly runId: string; readonly said: ShownText }) {
  return (
    <>
      <p>{said.text}</p>
      {said.at !== undefined && <Loaded key={said.at} runId={runId} at={said.at} bytes={said.bytes} />}
    </>
  );
}

/** A text as it is, anything else as indented JSON. */
function inText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
