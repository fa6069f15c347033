import { pathOfApi } from '../frame/api.ts';
import { store } from '../frame/live.ts';
import { useLoaded } from '../frame/loaded.ts';
import { More, usePages } from '../frame/pages.tsx';
import { addressOf, place } from '../frame/route.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { age, whole } from '../parts/amounts.ts';
import { Failed, Nothing } from '../parts/empty.tsx';
import { State } from '../parts/glyph.tsx';
import { useNow } from '../parts/now.ts';
import { Mono, RunLink } from '../parts/text.tsx';
import { type SaidText, textsOfSaid } from './said.ts';

interface ThreadLine {
  readonly id: string;
  readonly callerId: string;
  readonly updatedAt: number;
  readonly turns: number;
  readonly messages: number;
  readonly live?: string;
  readonly queued: number;
}

interface ThreadView {
  readonly id: string;
  readonly live?: string;
  /** Of the live run, if no process works on it. */
  readonly status?: 'waiting' | 'parked';
  readonly turns: readonly {
    readonly messageId: string;
    readonly runId: string;
    readonly state: 'queued' | 'live' | 'steered' | 'ended';
  }[];
}

const POLL_MS = 3_000;

/** Threads: the list, or one of them. */
export function ThreadsPage({ id }: { readonly id: string }) {
  const { query } = useShared(place);
  if (useShared(store)?.parts.threads === false)
    return (
      <>
        <header class="head">
          <h1>Threads</h1>
        </header>
        <Nothing of="threads" />
      </>
    );
  const caller = query.get('caller') ?? undefined;
  return id === '' ? <List /> : <Thread key={`${caller} ${id}`} id={id} caller={caller} />;
}

function List() {
  const { items, isLoaded, next, more, trouble, again } = usePages<ThreadLine>('threads');
  return (
    <>
      <header class="head">
        <h1>Threads</h1>
      </header>
      {trouble && <Failed trouble={trouble} again={again} />}
      {isLoaded && items.length === 0 && <Nothing of="threads" />}
      {items.length > 0 && (
        <section class="scroll" aria-label="Threads">
          <div class="line th" aria-hidden="true">
            {['State', 'Thread', 'Caller', 'Turns', 'Last'].map((name) => (
              <span key={name}>{name}</span>
            ))}
          </div>
          {items.map((line) => (
            <Line key={`${line.callerId} ${line.id}`} line={line} />
          ))}
          <More next={next} more={more} />
        </section>
      )}
    </>
  );
}

function Line({ line: { id, callerId, updatedAt, turns, live, queued } }: { readonly line: ThreadLine }) {
  return (
    <a class="line" href={`${addressOf('threads', id)}?${new URLSearchParams({ caller: callerId })}`}>
      {live === undefined ? <span class="faint">at rest</span> : <State state="run" word="live" />}
      <Mono class="cut1" text={id} />
      <Mono class="cut1 dim" text={callerId} />
      <span class="dim">
        {whole(turns)}
        {queued > 0 && ` · ${queued} queued`}
      </span>
      <span class="faint">{age(useNow() - updatedAt)}</span>
    </a>
  );
}

interface ThreadProps {
  readonly id: string;
  readonly caller: string | undefined;
}

function Thread({ id, caller }: ThreadProps) {
  const query = caller === undefined ? '' : `?${new URLSearchParams({ caller })}`;
  const { value, trouble, again } = useLoaded<ThreadView>(`${pathOfApi('threads', id)}${query}`, () => POLL_MS);
  const said = usePages<SaidText>(`${pathOfApi('threads', id, 'messages')}${query}`);
  return (
    <>
      <header class="head">
        <a class="crumb" href="#/threads">
          Threads
        </a>
        <span class="faint">/</span>
        <h1 class="mono cut1">{id}</h1>
        {value?.live !== undefined && <Live status={value.status} />}
        {caller !== undefined && (
          <span class="dim only-l">
            of <Mono text={caller} />
          </span>
        )}
      </header>
      {trouble && <Failed trouble={trouble} again={again} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard */}
      <section class="scroll" aria-label="Thread" tabIndex={0}>
        {value && <Turns view={value} />}
        {said.trouble && !trouble && <Failed trouble={said.trouble} again={said.again} />}
        {said.items.map((message, at) => (
          <Message key={message.id} said={message} isFirst={message.runId !== said.items[at - 1]?.runId} />
        ))}
        <More next={said.next} more={said.more} />
      </section>
    </>
  );
}

const SHOWN = 20;

/** The state of the live run: a run that waits, or is parked, is not running. */
function Live({ status }: { readonly status: ThreadView['status'] }) {
  if (status === undefined) return <State state="run" word="live" />;
  return <State state={status === 'parked' ? 'park' : 'wait'} />;
}

function Turns({ view: { turns, status } }: { readonly view: ThreadView }) {
  return (
    <div class="pad turns">
      <h2>
        {words.stages?.newestFirst}
        {turns.length >= SHOWN ? `: ${SHOWN} of them` : ''}
      </h2>
      <table>
        <thead>
          <tr>
            <th>State</th>
            <th>Run</th>
            <th>Message</th>
          </tr>
        </thead>
        <tbody>
          {turns.map(({ messageId, runId, state }) => (
            <tr key={messageId}>
              <td>{state === 'live' ? <Live status={status} /> : state}</td>
              <td>
                <RunLink runId={runId} />
              </td>
              <td>
                <Mono class="dim" text={messageId} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const roles: { readonly [role: string]: string } = {
  user: 'Person',
  assistant: 'Model',
  tool: 'Tools',
  system: 'System',
};

/** A message; the first one of each run has the link to it. */
function Message({ said, isFirst }: { readonly said: SaidText; readonly isFirst: boolean }) {
  return (
    <article class={isFirst ? 'msg begins' : 'msg'}>
      {isFirst && (
        <a class="of cut1" href={addressOf('run', said.runId)}>
          run <Mono text={said.runId} />
        </a>
      )}
      <div class="who">{roles[said.message.role] ?? said.message.role}</div>
      <div>
        {textsOfSaid(said).map(({ key, kind, text }) =>
          kind === 'text' ? (
            <p key={key}>{text}</p>
          ) : (
            <div key={key} class="tool">
              {text}
            </div>
          ),
        )}
      </div>
    </article>
  );
}
