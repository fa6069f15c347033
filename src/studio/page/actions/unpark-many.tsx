import { useState } from 'preact/hooks';
import type { RunLine } from '../../wire.ts';
import { pathOfApi, post, type Trouble } from '../frame/api.ts';
import { store, useCanWrite } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Failed } from '../parts/empty.tsx';
import { say } from '../parts/say.tsx';

/** One button for all parked runs that are listed. They are freed one after the other; the first refusal ends it. */
export function UnparkMany({ lines }: { readonly lines: ReadonlyMap<string, RunLine> }) {
  const [isAsking, setAsking] = useState(false);
  const [left, setLeft] = useState(0);
  const [trouble, setTrouble] = useState<Trouble>();
  const canWrite = useCanWrite();
  const parked = [...lines.values()].filter(({ state }) => state === 'park').map(({ runId }) => runId);
  if (!useShared(store)?.may.write || (parked.length < 2 && left === 0)) return null;
  const unpark = async () => {
    setTrouble(undefined);
    for (const [at, runId] of parked.entries()) {
      setLeft(parked.length - at);
      const { trouble } = await post(pathOfApi('runs', runId, 'unpark'), {});
      // One that another person freed meanwhile is no failure.
      if (trouble && trouble.status !== 404) {
        setTrouble({ ...trouble, message: `${runId}: ${trouble.message} ${parked.length - at} are still parked.` });
        break;
      }
    }
    setLeft(0);
    say(words.stages?.freed ?? '');
  };
  return (
    <>
      <button type="button" class="chip" disabled={!canWrite || left > 0} onClick={() => setAsking(true)}>
        {left > 0 ? `Unparking, ${left} left` : `Unpark ${parked.length}…`}
      </button>
      {trouble && <Failed trouble={trouble} />}
      {isAsking && (
        <Confirm
          title={`Unpark ${parked.length} runs?`}
          yes={`Unpark ${parked.length} runs`}
          onYes={() => void unpark()}
          onClose={() => setAsking(false)}
        >
          <p>{words.stages?.many}</p>
        </Confirm>
      )}
    </>
  );
}
