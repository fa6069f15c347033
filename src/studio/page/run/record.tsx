import type { ComponentChildren } from 'preact';
import type { RecordView } from '../../wire.ts';
import { words } from '../frame/words.ts';
import { clockTime, size, span, whole } from '../parts/amounts.ts';
import { State } from '../parts/glyph.tsx';
import { type Pair, Pairs } from '../parts/lists.tsx';
import { Copy, Mono, RunLink } from '../parts/text.tsx';
import { placed } from './placed.ts';
import { Value } from './value.tsx';

/** What is stored of a run. */
export function Record({ view }: { readonly view: RecordView }) {
  const { record, missing, line, owner, rootRunId, children, result } = view;
  const { runId } = line;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
    <section class="scroll record" aria-label="Record" tabIndex={0}>
      {missing !== undefined && <p class="pad dim">{missing}</p>}
      <div class="pad">
        <Pairs
          of={[
            ...(record ? ofRecord(record) : []),
            owner && ['Owner', <Mono key="owner" text={owner.id} />],
            owner?.leaseUntil && ['Lease until', clockTime(owner.leaseUntil)],
            rootRunId !== runId && ['Root', <RunLink key="root" runId={rootRunId} />],
            line.traceId && ['Trace', <CopiedId key="trace" text={line.traceId} />],
            result && ['Outcome', result.status],
            result?.error && ['Error', `${result.error.code}: ${result.error.message}`],
          ]}
        />
      </div>
      {result && result.output !== '' && (
        <Part title="Output">
          <pre class="short">{result.output.slice(0, 16_384)}</pre>
        </Part>
      )}
      {record && record.commands.length > 0 && <Commands of={record.commands} />}
      {children.length > 0 && (
        <Part title="Runs it began">
          <ul class="plain">
            {children.slice(0, 60).map((child) => (
              <li key={child.runId}>
                {child.line && <State state={child.line.state} />} <RunLink runId={child.runId} />
              </li>
            ))}
          </ul>
        </Part>
      )}
      {record?.critic && (
        <Part title="Critic">
          <Value runId={runId} shown={record.critic} />
        </Part>
      )}
      {record?.raw && (
        <Part title={words.stages?.withoutThem ?? ''}>
          <Value runId={runId} shown={record.raw} />
        </Part>
      )}
    </section>
  );
}

/** An id for another tool. */
function CopiedId({ text }: { readonly text: string }) {
  return (
    <>
      <Mono text={text} /> <Copy text={text} />
    </>
  );
}

function ofRecord(record: NonNullable<RecordView['record']>): readonly Pair[] {
  const { version, revision, updatedAt, bytes, iteration, attempts, elapsedMs, messages, definition, parked } = record;
  const { stored, now, isSame } = definition;
  return [
    ['Version', whole(version)],
    ['Revision', `${whole(revision)}, saved ${clockTime(updatedAt)}`],
    ['Size', `about ${size(bytes)}, ${whole(messages)} messages`],
    ['Steps', whole(iteration)],
    ['Starts', `${whole(attempts)} in a row recorded nothing new`],
    ['Worked', span(elapsedMs)],
    ['Definition', <Mono key="then" text={stored ?? 'none is recorded'} />],
    [
      'and now',
      isSame ? 'the same' : now === undefined ? 'its agent is not known here' : <Mono key="now" text={now} />,
    ],
    parked && ['Parked', `${parked.code}: ${parked.reason}`],
  ];
}

function Commands({ of }: { readonly of: NonNullable<RecordView['record']>['commands'] }) {
  return (
    <Part title={words.stages?.unreadCommands ?? ''}>
      <ul class="plain">
        {placed(of).map(({ place, item: { kind, at, by } }) => (
          <li key={place}>
            {kind}
            {by && (
              <>
                {' by '}
                {by.name ?? by.id}
              </>
            )}
            {at !== undefined && `, ${clockTime(at)}`}
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div class="pad">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
