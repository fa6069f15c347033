import type { JournalEvent, JsonValue, RecordView, WaitLine } from '../../wire.ts';
import { pathOfApi, post, type Trouble } from '../frame/api.ts';
import { shared } from '../frame/shared.ts';
import { dropKept } from './kept.ts';
import { afterRecord, answerIn, type StageAnswer, stageAfter } from './stages.ts';
import { settledText } from './waits.ts';

/** What a person decides. */
export interface InboxDecision {
  readonly how: StageAnswer['how'];
  readonly value?: JsonValue;
  readonly input?: JsonValue;
  readonly note?: string;
  readonly reason?: string;
  /** That of the input that was shown. */
  readonly digest?: string;
}

/** The answers of this tab, by their waits. */
export const sent = shared<ReadonlyMap<string, StageAnswer>>(new Map());

function change(waitId: string, next: StageAnswer): void {
  sent.set(new Map([...sent.value, [waitId, next]]));
}

/** Sends an answer. One that did not arrive may be sent again: it counts once. */
export async function sendAnswer(wait: WaitLine, decision: InboxDecision): Promise<StageAnswer> {
  const { how, input } = decision;
  const own: StageAnswer = { wait, how, input, isSending: true, isStored: false };
  change(wait.id, own);
  const path = pathOfApi('runs', wait.runId, 'answers', wait.id);
  const answer = await post<{ readonly state: 'recorded' | 'sent' | 'pending' }>(path, decision);
  const now = { ...(sent.value.get(wait.id) ?? own), isSending: false };
  const { trouble, value } = answer;
  const next: StageAnswer = trouble
    ? { ...now, trouble: troubleText(trouble) }
    : {
        ...now,
        isStored: true,
        isPending: value.state === 'pending',
        takenBy: now.takenBy ?? (value.state === 'recorded' ? '' : undefined),
      };
  if (!answer.trouble) dropKept(wait.id);
  change(wait.id, next);
  return next;
}

/** Forgets an answer, so that the wait can be answered again. */
export function forget(waitId: string): void {
  sent.set(new Map([...sent.value].filter(([id]) => id !== waitId)));
}

/** The trouble in words that say who was first, and what to do. */
function troubleText({ code, message, more }: Trouble): Pick<Trouble, 'code' | 'message'> {
  const before = code === 'ALREADY_ANSWERED' ? settledText(more.answered) : undefined;
  if (before !== undefined) return { code, message: `${before}. Your answer changed nothing.` };
  if (code !== 'OFFLINE') return { code, message };
  return { code, message: `${message} Send it again when the page is live: an answer counts once.` };
}

/** Takes an event of the run of an answer. */
export function seeEvent(waitId: string, event: JournalEvent, owner: string | undefined): void {
  const own = sent.value.get(waitId);
  const next = own && stageAfter(own, event, owner);
  if (next && next !== own) change(waitId, next);
}

/** Takes the record of the run of a wait. An answer in it that the run has not read is shown as one of this tab. */
export function seeRecord(wait: WaitLine, record: RecordView): void {
  const own = sent.value.get(wait.id) ?? answerIn(wait, record);
  const next = own && afterRecord(own, record);
  if (next && next !== sent.value.get(wait.id)) change(wait.id, next);
}
