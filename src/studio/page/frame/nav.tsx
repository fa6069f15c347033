import { useEffect, useState } from 'preact/hooks';
import { span } from '../parts/amounts.ts';
import { Icon } from '../parts/glyph.tsx';
import { isHelpOpen } from './keys.ts';
import { connection, store } from './live.ts';
import { place } from './route.ts';
import { switchTheme } from './theme.ts';
import { useShared } from './use-shared.ts';

const items = [
  ['runs', 'Runs', 'runs'],
  ['inbox', 'Inbox', 'inbox'],
  ['fan-outs', 'Fan-outs', 'fan'],
  ['threads', 'Threads', 'thread'],
  ['store', 'Store', 'store'],
] as const;

/** The views, and where the page stands. */
export function Nav() {
  const { view } = useShared(place);
  const { counts, title = 'Pawl Studio' } = useShared(store) ?? {};
  const at = view === 'run' ? 'runs' : view;
  const needsYou = counts?.you ?? 0;
  return (
    <nav id="nav" aria-label="Studio">
      <div class="brand">
        <i />
        {title}
      </div>
      {items.map(([to, name, icon]) => (
        <a key={to} class="item" href={`#/${to}`} aria-current={at === to ? 'page' : undefined}>
          <Icon name={icon} />
          {name}
          {to === 'inbox' && needsYou > 0 && <span class="count hot">{needsYou}</span>}
        </a>
      ))}
      <Foot />
    </nav>
  );
}

function Foot() {
  const { place: where = '', words } = useShared(store) ?? {};
  return (
    <div class="foot">
      <Liveness />
      <span class="mono cut1" title={where}>
        {where}
      </span>
      <span>{words?.may}</span>
      <button type="button" class="plain" onClick={switchTheme}>
        <Icon name="theme" />
        Theme
      </button>
      <button type="button" class="plain" onClick={() => isHelpOpen.set(true)}>
        <kbd>?</kbd>
        Keys
      </button>
    </div>
  );
}

function Liveness() {
  const { state } = useShared(connection);
  if (state === 'live') return <span class="live">live</span>;
  if (state === 'lost') return <span class="live lost-dot">not connected</span>;
  return <span class="live rest">{state === 'rest' ? 'resting' : 'connecting'}</span>;
}

const LOST_MS = 1_000;

/** Says since when the server is lost; the page stays as it was. */
export function LostBar() {
  const { state, since, trouble } = useShared(connection);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (state !== 'lost') return;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [state]);
  // A connection that is there again at once is not worth a word.
  if (state !== 'lost' || now - since < LOST_MS) return null;
  const what =
    trouble?.status === 401
      ? 'This token is not valid any more. Open the address that pawl studio printed.'
      : `${trouble?.message ?? 'The connection was closed.'} Since ${span(Math.max(0, now - since))}; the page connects again by itself.`;
  return (
    <div class="lost" role="alert">
      <span>{what}</span>
    </div>
  );
}
