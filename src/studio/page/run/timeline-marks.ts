import type { JournalEvent } from '../../wire.ts';
import { words } from '../frame/words.ts';
import type { Timeline, TimelineCall, TimelineStep } from './timeline.ts';

/** A time in which no process worked. */
export interface Idle {
  /** Wall clock, ms. */
  readonly since: number;
  /** The run waited; else its process had ended. */
  readonly isWait: boolean;
  /** Its process left it in good order. */
  readonly isLeft?: true;
  /** The run had ended, and was retried by this person; '' = not known. */
  readonly retriedBy?: string;
}

interface Placed {
  /** It stands before this step, or inside it. */
  readonly step: number;
  readonly isInside: boolean;
  /** Wall clock, ms. */
  readonly at: number;
}

/** A call that ran again. */
type Again = Pick<TimelineCall, 'callId' | 'name' | 'effect'>;

/** A change of owner. */
export interface OwnerMark extends Placed {
  readonly kind: 'owner';
  /** `waited`: nothing was left to do. `retried`: the run had ended. `left`: in good order. `slice`: its time was over, or it died. `died`: it said nothing. `ended`: earlier events are not known. */
  readonly why: 'waited' | 'retried' | 'left' | 'slice' | 'died' | 'ended';
  /** Who retried the run; '' = not known. */
  readonly by?: string | undefined;
  readonly before?: string | undefined;
  readonly after?: string | undefined;
  /** How long no process is known to have worked, ms. */
  readonly ms: number;
  /** Calls that ran when the process ended. */
  readonly cut: readonly string[];
  /** Recorded calls that were repeated: none, if Pawl keeps its word. */
  readonly repeated: number;
  readonly again: readonly Again[];
  /** Names of `once` calls whose outcome is unknown. */
  readonly unknown: readonly string[];
  /** Whether the model is asked again for the turn that the process had asked for. */
  readonly isTurnAgain: boolean;
}

/** Something between the steps of a run. */
export type TimelineMark =
  | OwnerMark
  | (Placed & { readonly kind: 'steer'; readonly count: number; readonly texts: readonly string[] })
  | (Placed & { readonly kind: 'parked'; readonly code: string; readonly text: string })
  | (Placed & { readonly kind: 'unparked'; readonly by: string })
  /** One more person approved; others are needed. */
  | (Placed & {
      readonly kind: 'vote';
      readonly of: string;
      readonly votes: number;
      readonly by: string;
      readonly text?: string | undefined;
    })
  /** An answer that the run did not take: its wait is still open. */
  | (Placed & { readonly kind: 'refused'; readonly code: string; readonly text: string; readonly by: string })
  | (Placed & {
      readonly kind: 'ended';
      readonly status: string;
      readonly code?: string | undefined;
      readonly text?: string | undefined;
    });

/** A mark before its place is known. */
export type Unplaced<Mark> = Mark extends Placed ? Omit<Mark, 'step' | 'isInside'> : never;

interface Change {
  readonly timeline: Timeline;
  readonly event: Extract<JournalEvent, { type: 'run.resumed' }>;
  /** The last step that is known. */
  readonly open: TimelineStep | undefined;
}

/** What a change of owner means for the calls that were under way. */
export function ownerChange({ timeline, event, open }: Change): {
  readonly mark: Unplaced<OwnerMark>;
  readonly unknownIds: readonly string[];
} {
  const under = (open?.calls ?? []).filter(({ state }) => state === 'started');
  const unknown = under.filter(({ effect }) => effect === 'once');
  const { rest, now, owner } = timeline;
  return {
    mark: {
      kind: 'owner',
      at: event.at,
      why: whyChanged(timeline),
      by: rest?.retriedBy,
      before: owner,
      after: event.owner,
      ms: Math.max(0, event.at - (rest?.since ?? now)),
      cut: under.filter(({ effect }) => effect !== 'once').map(({ callId }) => callId),
      ...{ repeated: 0, again: [] },
      unknown: unknown.map(({ name }) => name),
      isTurnAgain: !rest?.isWait && (open === undefined || open.isDone || open.at === undefined),
    },
    unknownIds: unknown.map(({ callId }) => callId),
  };
}

function whyChanged({ rest, isSlice, owner }: Timeline): OwnerMark['why'] {
  if (rest?.retriedBy !== undefined) return 'retried';
  if (rest) return rest.isWait ? 'waited' : 'left';
  if (isSlice) return 'slice';
  return owner === undefined ? 'ended' : 'died';
}

const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** A change of owner in words: what was, and what was not, repeated. */
export function ownerWords(mark: OwnerMark, length: string): readonly [title: string, text: string] {
  const { why, before, after, repeated, again, unknown, isTurnAgain } = mark;
  const next = `${after || 'a process'} continues from the record`;
  // Whether that process died, left or waited is in events that this page does not have.
  if (why === 'ended') return ['New owner. ', `${next}; what was before is in earlier events.`];
  if (why === 'waited') return ['Waited. ', `No process held the run for ${length}; ${next}.`];
  if (why === 'retried') return [`Retried${mark.by && ` by ${mark.by}`}. `, `${next}.`];
  const isCut = mark.cut.length + unknown.length > 0;
  const was = {
    left: 'left',
    slice: 'used up its slice, or died',
    died: isCut ? words.stages?.inCall : 'died',
  }[why];
  const parts = [`${counted(repeated, 'recorded call')} repeated`];
  for (const effect of ['idempotent', 'read'] as const) {
    const own = again.filter((call) => call.effect === effect).length;
    const how = effect === 'read' ? 'changes nothing' : 'with its key';
    if (own > 0) parts.push(`${counted(own, `${effect} call`)} ran again, ${how}`);
  }
  if (unknown.length > 0)
    parts.push(`the outcome of ${unknown.slice(0, 5).join(', ')} is unknown, and it is not repeated`);
  if (isTurnAgain) parts.push(`${words.stages?.turnAgain}`);
  const title = { left: 'Owner left. ', slice: 'New owner. ', died: 'Owner died. ' }[why];
  return [title, `${before || 'a process'} ${was}; nothing worked for ${length}. ${next}. ${parts.join('; ')}.`];
}
