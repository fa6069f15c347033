import { useEffect } from 'preact/hooks';
import { FanOuts } from './fan-out/fan-outs.tsx';
import { Help } from './frame/help.tsx';
import { store, storeTrouble } from './frame/live.ts';
import { LostBar, Nav } from './frame/nav.tsx';
import { place } from './frame/route.ts';
import { useShared } from './frame/use-shared.ts';
import { Inbox } from './inbox/inbox.tsx';
import { Failed } from './parts/empty.tsx';
import { escapedHtml } from './parts/escaped.ts';
import { SaidAloud } from './parts/say.tsx';
import { RunPage } from './run/run.tsx';
import { Runs } from './runs/runs.tsx';
import { Store } from './store/store.tsx';
import { ThreadsPage } from './threads/threads.tsx';

/** The whole page. */
export function App() {
  const { view, id } = useShared(place);
  const trouble = useShared(storeTrouble);
  useEffect(() => {
    document.title = `${escapedHtml(id || view)} · Pawl Studio`;
  }, [id, view]);
  return (
    <>
      <Nav />
      <main id="main" tabIndex={-1}>
        <LostBar />
        {trouble && <Failed trouble={trouble} />}
        <View />
      </main>
      <SaidAloud />
      <Help />
    </>
  );
}

/** What is shown at the address. A run that no view can draw leaves the frame as it is, and another address draws again. */
function View() {
  const { view, id, part } = useShared(place);
  // A view that was drawn before the texts of the server came is drawn again with them.
  useShared(store);
  if (undrawn === location.hash) return <p class="pad">This cannot be shown.</p>;
  if (view === 'run') return <RunPage key={id} runId={id} part={part} />;
  if (view === 'inbox') return <Inbox picked={id} />;
  if (view === 'fan-outs') return <FanOuts id={id} />;
  if (view === 'threads') return <ThreadsPage id={id} />;
  if (view === 'store') return <Store />;
  return <Runs />;
}

/** The address at which a view failed. */
let undrawn: string | undefined;

// Preact asks the component above the one that failed, and draws it again.
View.getDerivedStateFromError = () => {
  undrawn = location.hash;
  return {};
};
