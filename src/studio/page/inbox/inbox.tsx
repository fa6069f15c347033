import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { WaitLine } from '../../wire.ts';
import { useKeys } from '../frame/keys.ts';
import { addressOf, show } from '../frame/route.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { age } from '../parts/amounts.ts';
import { Failed, Nothing } from '../parts/empty.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { useNow } from '../parts/now.ts';
import { Rows } from '../parts/rows.tsx';
import { sent } from './answers.ts';
import { Card } from './card.tsx';
import { isGiven } from './stages.ts';
import { useWaitFacts, useWaits, type WaitList } from './wait-list.ts';
import { digestOf, dueOfWait, needsPerson, titleOf, votesShownOf, type WaitRow, waitRows, whereOf } from './waits.ts';

/** All that waits for a person. @param props.picked the wait that is open, by its id */
export function Inbox({ picked }: { readonly picked: string }) {
  const list = useWaits();
  const isSmall = matchMedia('(max-width: 760px)').matches;
  const answers = useShared(sent);
  const given = [...answers.values()].filter(isGiven);
  const isOwn = ({ id }: WaitLine) => given.some(({ wait }) => wait.id === id);
  const isAnswered = (wait: WaitLine) => wait.isAnswered || isOwn(wait);
  // An answered wait stays here when the server has it no more: its card has the way to the run.
  const waits = [...list.waits.filter((wait) => !isOwn(wait)), ...given.map(({ wait }) => wait)];
  const rows = waitRows(waits, isAnswered);
  const open = waits.filter((wait) => !isAnswered(wait));
  const ids = rows.flatMap((row) => ('wait' in row ? [row.wait] : []));
  // The card that was shown first stays when another one is before it.
  const first = useRef('');
  if (!ids.some(({ id }) => id === first.current)) first.current = ids[0]?.id ?? '';
  const at = isSmall || picked !== '' ? picked : first.current;
  useKeys((key) => {
    const by = { j: 1, k: -1 }[key];
    if (by === undefined) return false;
    const next = ids[Math.min(ids.length - 1, Math.max(0, ids.findIndex(({ id }) => id === at) + by))];
    if (next) show(addressOf('inbox', next.id));
    return true;
  });
  return (
    <>
      <Head list={list} open={open} isPicked={isSmall && picked !== ''} />
      {list.trouble && <Failed trouble={list.trouble} again={list.load} />}
      {list.isLoaded && ids.length === 0 && at === '' ? (
        <Nothing of="waits" />
      ) : (
        <div class="split inbox">
          {!(isSmall && picked !== '') && <List list={list} rows={rows} at={at} />}
          {at !== '' && <Picked key={at} waitId={at} list={list} />}
        </div>
      )}
    </>
  );
}

interface HeadProps {
  readonly list: WaitList;
  /** Those that are not answered. */
  readonly open: readonly WaitLine[];
  readonly isPicked: boolean;
}

function Head({ list, open: all, isPicked }: HeadProps) {
  const yours = all.filter(needsPerson);
  // The badge beside the name of the view counts runs, each with those below it.
  const runs = new Set(yours.map(({ path, runId }) => path[0]?.runId ?? runId)).size;
  return (
    <header class="head">
      {isPicked ? (
        <a class="crumb" href="#/inbox">
          ‹ Inbox
        </a>
      ) : (
        <h1>Inbox</h1>
      )}
      {list.isLoaded && (
        <span class="faint only-l">
          {runs === 1 ? '1 run needs you' : `${runs} runs need you`}
          {yours.length > runs && `, ${yours.length} answers`}
          {` · ${all.length - yours.length} wait for time or events`}
          {list.isMore && ' · there are more'}
        </span>
      )}
      <span class="grow" />
      <span class="faint only-l">
        <kbd>j</kbd> <kbd>k</kbd> next, previous
      </span>
    </header>
  );
}

interface ListProps {
  readonly list: WaitList;
  readonly rows: readonly WaitRow[];
  readonly at: string;
}

function List({ list, rows, at }: ListProps) {
  const shown = rows.findIndex((row) => 'wait' in row && row.wait.id === at);
  return (
    <div class="waits-box">
      {list.fresh > 0 && (
        <button type="button" class="fresh" onClick={list.showFresh}>
          {list.fresh} new
        </button>
      )}
      <Rows
        label="Waits"
        class="waits"
        items={rows}
        heightOf={(row) => ('wait' in row ? 75 : 37)}
        keyOf={(row) => ('wait' in row ? row.wait.id : row.group)}
        shown={shown < 0 ? undefined : shown}
        onPointed={list.hold}
        draw={(row) =>
          'wait' in row ? <Line wait={row.wait} isAt={row.wait.id === at} /> : <h2 class="group">{row.group}</h2>
        }
      />
    </div>
  );
}

function Line({ wait, isAt }: { readonly wait: WaitLine; readonly isAt: boolean }) {
  const votes = votesShownOf(wait);
  const own = useShared(sent).get(wait.id);
  const isSent = isGiven(own) || wait.isAnswered;
  const isDenied = (isGiven(own) ? [own] : (wait.answers ?? [])).some(({ how }) => how === 'deny');
  const now = useNow();
  return (
    <a class="w" href={addressOf('inbox', wait.id)} aria-current={isAt ? 'true' : undefined}>
      <Glyph state={isSent ? (isDenied ? 'cut' : 'ok') : needsPerson(wait) ? 'you' : 'wait'} />
      <b class="cut1">{titleOf(wait)}</b>
      <small>{age(now - wait.createdAt)}</small>
      <small class="mono cut1">{[whereOf(wait).join(' › '), votes].filter(Boolean).join(' · ')}</small>
      <small>{isSent ? (isDenied ? 'denied' : 'answered') : dueOfWait(wait, now)}</small>
    </a>
  );
}

interface PickedProps {
  readonly waitId: string;
  readonly list: WaitList;
}

/** The wait that is open. It stays as it was shown, also when the list has lost it. */
function Picked({ waitId, list }: PickedProps) {
  const [wait, setWait] = useState(sent.value.get(waitId)?.wait);
  const [other, setOther] = useState<WaitLine>();
  useLayoutEffect(() => {
    const found = list.newest.find(({ id }) => id === waitId);
    // Another input than the one on the card: it is not put under the reader's pointer.
    if (found && wait && digestOf(found) !== digestOf(wait)) setOther(found);
    else if (found) setWait(found);
  }, [list.newest]);
  if (!wait)
    return (
      <section class="scroll" aria-label="Request">
        {list.isLoaded && <Nothing of="gone" />}
      </section>
    );
  const take = () => {
    setWait(other);
    setOther(undefined);
  };
  const isListed = list.newest.some(({ id }) => id === waitId);
  return (
    <section class="scroll" aria-label="Request">
      {other && (
        <button type="button" class="fresh" onClick={take}>
          {words.stages?.newInput}
        </button>
      )}
      <Shown wait={wait} isListed={isListed} isChanged={other !== undefined} list={list} />
    </section>
  );
}

interface ShownProps {
  readonly wait: WaitLine;
  readonly isListed: boolean;
  readonly isChanged: boolean;
  readonly list: WaitList;
}

function Shown({ wait, isListed, isChanged, list }: ShownProps) {
  const { record, over } = useWaitFacts(wait, isListed);
  const answers = useShared(sent);
  // What asks again; else, once this one is answered, what needs a person next.
  const again = list.newest.find(
    ({ runId, callId, id }) => !isListed && runId === wait.runId && callId === wait.callId && id !== wait.id,
  );
  const isNext = (each: WaitLine) => needsPerson(each) && !each.isAnswered && !answers.has(each.id);
  const next = again ?? (isGiven(answers.get(wait.id)) ? list.newest.find(isNext) : undefined);
  const ended = isListed ? undefined : over;
  return (
    <>
      {next && (
        <a class="fresh" href={addressOf('inbox', next.id)}>
          {words.stages?.[again ? 'asksAgain' : 'nextOne']}
        </a>
      )}
      <Card wait={wait} record={record} over={isChanged ? words.stages?.another : ended} reload={list.load} />
    </>
  );
}
