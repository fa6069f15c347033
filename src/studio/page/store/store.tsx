import type { DoctorRow, StoreView } from '../../wire.ts';
import { store } from '../frame/live.ts';
import { More, usePages } from '../frame/pages.tsx';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { whole } from '../parts/amounts.ts';
import { Failed, Nothing } from '../parts/empty.tsx';
import { Glyph, glyphWords, State } from '../parts/glyph.tsx';
import { Facts } from '../parts/lists.tsx';
import { Mono, RunLink } from '../parts/text.tsx';

/** The store: what it can do, and what each run in it needs. */
export function Store() {
  const { items, isLoaded, next, more, trouble, again } = usePages<DoctorRow>('store/doctor');
  const view = useShared(store);
  const inNeed = items.filter(({ needs }) => needs !== undefined).length;
  return (
    <>
      <header class="head">
        <h1>Store</h1>
        {view && view.place !== '' && <Mono class="dim cut1" text={view.place} />}
      </header>
      {view && <About view={view} />}
      {trouble && <Failed trouble={trouble} again={again} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard */}
      <section class="scroll" aria-label="Store" tabIndex={0}>
        {view && <Abilities of={view.abilities} />}
        {isLoaded && items.length === 0 && <Nothing of="doctor" />}
        {items.length > 0 && (
          <div class="pad doctor">
            <h2>
              {words.stages?.becomes}{' '}
              {inNeed > 0 && (
                <span class="you">
                  · {whole(inNeed)} of these {inNeed === 1 ? 'needs' : 'need'} a person
                </span>
              )}
            </h2>
            <table>
              <thead>
                <tr>
                  {['State', 'Run', 'What happens next', 'It needs', 'Record'].map((name) => (
                    <th key={name}>{name}</th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {items.map((row) => (
                  <Row key={row.line.runId} row={row} />
                ))}
              </tbody>
            </table>
            <More next={next} more={more} />
          </div>
        )}
      </section>
    </>
  );
}

function About({ view: { counts, isPartial, recordVersion, by } }: { readonly view: StoreView }) {
  const known = Object.entries(counts).filter(([, count]) => count > 0) as [keyof typeof counts, number][];
  return (
    <Facts
      of={[
        ...known.map(
          ([state, count]) =>
            [
              glyphWords[state],
              <span key={state}>
                <Glyph state={state} /> {whole(count)}
                {isPartial && <span class="faint"> at least</span>}
              </span>,
            ] as const,
        ),
        ['Writes records', `version ${recordVersion}`],
        ['You answer as', by ? (by.name ?? by.id) : 'no name'],
      ]}
    />
  );
}

function Abilities({ of }: { readonly of: StoreView['abilities'] }) {
  return (
    <div class="pad doctor">
      <h2>What it can do</h2>
      <table>
        <tbody>
          {of.map(({ name, isThere, text }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{isThere ? <State state="ok" word="yes" /> : <State state="cut" word="no" />}</td>
              <td class="dim">{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ row: { line, verdict, needs, version, unknownCalls } }: { readonly row: DoctorRow }) {
  return (
    <tr>
      <td>
        <State state={line.state} />
      </td>
      <td>
        <RunLink runId={line.runId} />
      </td>
      <td class="wraps">
        {verdict.reason}
        {verdict.code !== undefined && (
          <span class="faint">
            {' '}
            <Mono text={verdict.code} />
          </span>
        )}
        {unknownCalls.length > 0 && (
          <span class="you">
            {' '}
            It is unknown whether <Mono text={unknownCalls.join(', ')} /> took effect.
          </span>
        )}
      </td>
      <td class="wraps">{needs === undefined ? <span class="faint">nothing</span> : needs}</td>
      <td class="faint">{version === undefined ? '' : `version ${version}`}</td>
    </tr>
  );
}
