// What can be done to a run, and how far an action has come: pure.
import type { RecordView } from '../../wire.ts';
import { words } from '../frame/words.ts';

/** Something that a person does to a run. */
export type RunAction = 'steer' | 'cancel' | 'park' | 'unpark' | 'retry';

/** An action that the server took. */
export interface Done {
  readonly action: RunAction;
  /** As the server answered: `sent`, `queued`, `durable`, `ended`; '' for others. */
  readonly state: string;
  /** The revision of the record before it. */
  readonly revision?: number | undefined;
}

/** The actions that a run takes in its state. */
export function actionsFor({
  line: { state },
  owner,
  record,
}: Pick<RecordView, 'line' | 'owner' | 'record'>): readonly RunAction[] {
  // A record that is kept can continue.
  if (state === 'fail' || state === 'cut') return record ? ['retry'] : [];
  if (state === 'ok' || state === 'bad') return [];
  if (state === 'park') return ['unpark', 'cancel'];
  // A run that a process holds is parked by that process alone.
  return owner || state === 'run' ? ['steer', 'cancel'] : ['steer', 'park', 'cancel'];
}

/** How far an action has come, as the record proves. */
export function stageText(done: Done, { line, record }: Pick<RecordView, 'line' | 'record'>): string | undefined {
  const { stages = {} } = words;
  const isOver = line.state === 'ok' || line.state === 'fail' || line.state === 'cut';
  switch (done.action) {
    case 'steer':
      return steerText(done, record, isOver);
    case 'cancel':
      if (isOver) return line.state === 'cut' ? stages.cancelled : stages.over + line.where;
      return stages.cancels;
    case 'park':
      return line.state === 'park' ? stages.parked : 'Stored';
    case 'retry':
      return isOver ? 'Stored' : stages.woken;
    case 'unpark':
      return line.state === 'park' ? 'Stored' : stages.unparked;
  }
}

function steerText({ state, revision }: Done, record: RecordView['record'], isOver: boolean): string | undefined {
  const { stages = {} } = words;
  if (state !== 'sent') return stages.reads;
  if (isOver) return stages.ended;
  const isRead = record !== undefined && !record.commands.some(({ kind }) => kind === 'steer');
  const isNewer = revision !== undefined && record !== undefined && record.revision > revision;
  return isRead && isNewer ? stages.read : stages.steered;
}
