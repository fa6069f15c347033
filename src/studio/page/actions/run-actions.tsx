import { useEffect, useState } from 'preact/hooks';
import type { RecordView } from '../../wire.ts';
import { type ApiAnswer, pathOfApi, post, type Trouble } from '../frame/api.ts';
import { useKeys } from '../frame/keys.ts';
import { store, useCanWrite } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { dropKept, useKept } from '../inbox/kept.ts';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { Failed } from '../parts/empty.tsx';
import { Reason } from '../parts/reason.tsx';
import { say } from '../parts/say.tsx';
import { Mono, RunLink } from '../parts/text.tsx';
import { actionsFor, type Done, type RunAction, stageText } from './action-stages.ts';

/** Steer, Cancel, Park, Unpark and Retry of a run: those that can be done to it now. */
export function RunButtons({ record }: { readonly record: RecordView }) {
  const [open, setOpen] = useState<RunAction>();
  const canWrite = useCanWrite();
  const acts = useActions(record.line.runId, record.record?.revision);
  const may = actionsFor(record);
  const canSteer = may.includes('steer') && canWrite;
  useKeys((key) => {
    if (key !== 's' || !canSteer) return false;
    setOpen('steer');
    return true;
  });
  if (!useShared(store)?.may.write) return null;
  const press = (action: RunAction) => {
    if (action === 'unpark' || action === 'retry') void acts.send(action, {});
    else setOpen(action);
  };
  const button = (action: RunAction, name: string) =>
    may.includes(action) && (
      <button
        type="button"
        class={action === 'cancel' ? 'danger' : action === 'steer' ? 'only-l' : ''}
        disabled={!canWrite || acts.isSending}
        onClick={() => press(action)}
      >
        {name}
        {action === 'steer' && <kbd>s</kbd>}
      </button>
    );
  const ask = { record, close: () => setOpen(undefined), send: acts.send };
  return (
    <>
      <Stage record={record} done={acts.done} trouble={acts.trouble} />
      {button('steer', 'Steer ')}
      {button('unpark', 'Unpark')}
      {button('retry', 'Retry')}
      {button('park', 'Park…')}
      {button('cancel', 'Cancel…')}
      {open === 'steer' && <Steer {...ask} />}
      {open === 'cancel' && <Cancel {...ask} />}
      {open === 'park' && <Park {...ask} />}
    </>
  );
}

/** The one button of a parked run. */
export function Unpark({ runId }: { readonly runId: string }) {
  const acts = useActions(runId);
  const canWrite = useCanWrite();
  if (!useShared(store)?.may.write) return null;
  return (
    <>
      <button type="button" disabled={!canWrite || acts.isSending} onClick={() => void acts.send('unpark', {})}>
        Unpark
      </button>
      {acts.trouble && <Failed trouble={acts.trouble} />}
    </>
  );
}

/** Another run with the steps up to one. */
export function Fork({ runId, at }: { readonly runId: string; readonly at: number }) {
  const [made, setMade] = useState<ApiAnswer<{ readonly runId: string }>>();
  const canWrite = useCanWrite();
  if (!useShared(store)?.may.write) return null;
  const fork = async (effects: string) => setMade(await post(pathOfApi('runs', runId, 'fork'), { at, effects }));
  return (
    <>
      <h3>Fork here</h3>
      <p class="faint">{words.stages?.fork}</p>
      <p class="buttons">
        {['ask', 'refuse', 'live'].map((effects) => (
          <button key={effects} type="button" disabled={!canWrite} onClick={() => void fork(effects)}>
            {effects}
          </button>
        ))}
      </p>
      {made?.trouble && <Failed trouble={made.trouble} />}
      {made?.value && <RunLink runId={made.value.runId} />}
    </>
  );
}

type Send = (action: RunAction, body: object) => Promise<boolean>;

/** Sends actions of a run, and keeps how far the last one came. */
function useActions(runId: string, revision?: number) {
  const [done, setDone] = useState<Done>();
  const [trouble, setTrouble] = useState<Trouble>();
  const [isSending, setSending] = useState(false);
  const send: Send = async (action, body) => {
    setSending(true);
    setTrouble(undefined);
    const answer = await post<{ readonly state?: string }>(pathOfApi('runs', runId, action), body);
    setSending(false);
    setTrouble(answer.trouble);
    if (answer.trouble) return false;
    setDone({ action, state: answer.value.state ?? '', revision });
    dropKept(runId);
    return true;
  };
  return { done, trouble, isSending, send };
}

interface StageProps {
  readonly record: RecordView;
  readonly done: Done | undefined;
  readonly trouble: Trouble | undefined;
}

/** How far the last action came; it is said once. */
function Stage({ record, done, trouble }: StageProps) {
  const text = done && stageText(done, record);
  useEffect(() => {
    if (text) say(text);
  }, [text]);
  if (trouble) return <Failed trouble={trouble} />;
  return <span class="faint only-l">{text}</span>;
}

interface AskProps {
  readonly record: RecordView;
  readonly send: Send;
  close(): void;
}

function Steer({ record: { line }, send, close }: AskProps) {
  const canWrite = useCanWrite();
  const [text, setText] = useKept(line.runId, 'steer');
  const steer = async () => {
    if (text.trim() !== '' && (await send('steer', { text: text.trim() }))) close();
  };
  return (
    <Dialog label="Steer the run" onClose={close}>
      <h1>
        Steer <Mono text={line.runId} />
      </h1>
      <label class="field">
        <span>{words.stages?.steers}</span>
        <textarea
          rows={4}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void steer();
          }}
        />
      </label>
      <p class="buttons">
        <button type="button" class="primary" disabled={!canWrite} onClick={() => void steer()}>
          Send
        </button>
        <button type="button" onClick={close}>
          Not now
        </button>
      </p>
    </Dialog>
  );
}

function Cancel({ record: { line, children }, send, close }: AskProps) {
  const [reason, setReason] = useKept(line.runId, 'cancel');
  const more = children.length > 0 && words.stages?.below;
  return (
    <Confirm
      title="Cancel this run?"
      yes="Cancel the run"
      onYes={() => void send('cancel', reason.trim() === '' ? {} : { reason: reason.trim() })}
      onClose={close}
    >
      <p>
        <Mono text={line.runId} />
        {words.stages?.ends}
        {more}
      </p>
      <Reason label="Why?" text={reason} onType={setReason} />
    </Confirm>
  );
}

function Park({ record: { line }, send, close }: AskProps) {
  const [reason, setReason] = useKept(line.runId, 'park');
  return (
    <Confirm
      title="Park this run?"
      yes="Park the run"
      onYes={() => void send('park', reason.trim() === '' ? {} : { reason: reason.trim() })}
      onClose={close}
    >
      <p>
        <Mono text={line.runId} /> {words.stages?.parks}
      </p>
      <Reason label="Why?" text={reason} onType={setReason} />
    </Confirm>
  );
}
