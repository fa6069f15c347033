import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JsonValue, LongPart } from '../../wire.ts';
import { size, whole } from '../parts/amounts.ts';
import { Copy } from '../parts/text.tsx';
import { jsonOfField } from './form-fields.ts';

/** Of a longer text the page shows this much at first, and says so. */
const SHOWN = 16_384;

interface ExactProps {
  readonly title: string;
  readonly value: JsonValue;
  /** Only the beginning of the value is here. */
  readonly long?: LongPart | undefined;
  onLoad?(): void;
  /** Said below it. */
  readonly children?: ComponentChildren;
  /** The reader has seen it to its end. */
  onSeen?(): void;
}

type ExactInputProps = Omit<ExactProps, 'value'> & { readonly value: JsonValue | undefined };

/** A value as fields, or as JSON; nothing of it is cut without a word. None, if there is none. */
export function ExactInput({ value, long, ...rest }: ExactInputProps) {
  if (long) return <Exact key="long" {...rest} value={null} long={long} />;
  return value === undefined ? null : <Exact key="whole" {...rest} value={value} />;
}

function Exact({ title, value, long, onLoad, onSeen, children }: ExactProps) {
  const isObject =
    typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
  const [isJson, setJson] = useState(!isObject);
  const box = useRef<HTMLElement>(null);
  useSeen(box, onSeen);
  const json = long?.text ?? jsonOfField(value);
  return (
    <section ref={box}>
      <div class="sec">
        <h2>{title}</h2>
        <span class="grow" />
        {!long && <Copy text={json} />}
        {isObject && (
          <span class="seg">
            <button type="button" aria-pressed={!isJson} onClick={() => setJson(false)}>
              Fields
            </button>
            <button type="button" aria-pressed={isJson} onClick={() => setJson(true)}>
              JSON
            </button>
          </span>
        )}
      </div>
      {isJson || !isObject ? (
        <LongText name="JSON" kind="" text={json} />
      ) : (
        Object.entries(value).map(([name, each]) => (
          <LongText
            key={name}
            name={name}
            kind={typeof each === 'string' ? 'text' : Array.isArray(each) ? 'list' : typeof each}
            text={typeof each === 'string' ? each : jsonOfField(each)}
          />
        ))
      )}
      {long && (
        <p>
          {`It has ${size(long.bytes)}; the first ${whole(json.length)} characters are shown. `}
          <button type="button" class="more" onClick={onLoad}>
            Load all of it
          </button>
        </p>
      )}
      {children}
    </section>
  );
}

function LongText({ name, kind, text }: { readonly name: string; readonly kind: string; readonly text: string }) {
  const [isWhole, setWhole] = useState(text.length <= SHOWN);
  const lines = text.split('\n').length;
  return (
    <div class="field">
      <span>
        {name}
        {kind && ` · ${kind}`}
        {text.length > 80 && ` · ${whole(text.length)} characters`}
        {lines > 8 && `, ${whole(lines)} lines`}
        {!isWhole && `, the first ${whole(SHOWN)} are shown`}
      </span>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard */}
      <pre class="short" tabIndex={0}>
        {isWhole ? text : text.slice(0, SHOWN)}
      </pre>
      {!isWhole && (
        <button type="button" class="more" onClick={() => setWhole(true)}>
          Show all {whole(text.length)} characters
        </button>
      )}
    </div>
  );
}

const LOOK_MS = 300;

/** Says once that the end of a section, and of each text that scrolls in it, was in sight. */
function useSeen(box: RefObject<HTMLElement | null>, onSeen: (() => void) | undefined): void {
  const isSeen = useRef(false);
  useEffect(() => {
    const ends = new WeakSet<Element>();
    const look = () => {
      const section = box.current;
      if (!section || isSeen.current || document.hidden) return;
      for (const text of section.querySelectorAll('pre'))
        if (text.scrollTop + text.clientHeight >= text.scrollHeight - 4 && isInSight(text)) ends.add(text);
      const isAll = [...section.querySelectorAll('pre')].every((text) => ends.has(text));
      if (!isAll || section.querySelector('.more')) return;
      isSeen.current = true;
      onSeen?.();
    };
    const timer = setInterval(look, LOOK_MS);
    look();
    return () => clearInterval(timer);
  }, []);
}

function isInSight(element: Element): boolean {
  const { bottom } = element.getBoundingClientRect();
  return bottom > 0 && bottom <= innerHeight + 1;
}
