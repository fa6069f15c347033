import type { FanOutLine, FanOutList } from '../../fan-out-wire.ts';
import { useLoaded } from '../frame/loaded.ts';
import { addressOf } from '../frame/route.ts';
import { age } from '../parts/amounts.ts';
import { Failed, Nothing } from '../parts/empty.tsx';
import { State } from '../parts/glyph.tsx';
import { useNow } from '../parts/now.ts';
import { Mono } from '../parts/text.tsx';
import { FanOutPage } from './fan-out.tsx';

const POLL_MS = 3_000;

/** Fan-outs: the list, or one of them. */
export function FanOuts({ id }: { readonly id: string }) {
  return id === '' ? <List /> : <FanOutPage key={id} id={id} />;
}

function List() {
  const { value, trouble, again } = useLoaded<FanOutList>('fan-outs', () => POLL_MS);
  return (
    <>
      <header class="head">
        <h1>Fan-outs</h1>
        {value && value.folder !== '' && (
          <span class="faint only-l">
            below <Mono text={value.folder} />
            {value.isPartial && ' · the newest 200'}
          </span>
        )}
      </header>
      {trouble && <Failed trouble={trouble} again={again} />}
      {value?.items.length === 0 && <Nothing of="fanOuts" />}
      {value && value.items.length > 0 && (
        <section class="scroll" aria-label="Fan-outs">
          <div class="line th" aria-hidden="true">
            {['State', 'File', 'Prompt', 'Answered', 'Last'].map((name) => (
              <span key={name}>{name}</span>
            ))}
          </div>
          {value.items.map((line) => (
            <Line key={line.id} line={line} />
          ))}
        </section>
      )}
    </>
  );
}

function Line({ line: { id, name, prompt, state, models, answered, updatedAt, code } }: { readonly line: FanOutLine }) {
  return (
    <a class="line" href={addressOf('fan-outs', id)}>
      <State state={state} word={stateWord(state)} />
      <Mono class="cut1" text={name} />
      <span class="cut1">{code ?? prompt}</span>
      <span class="dim">{models === 0 ? '' : `${answered} of ${models}`}</span>
      <span class="faint">{age(useNow() - updatedAt)}</span>
    </a>
  );
}

function stateWord(state: FanOutLine['state']): string {
  return { ok: 'done', run: 'running', bad: 'unreadable' }[state as string] ?? 'interrupted';
}
