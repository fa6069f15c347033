import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { Command } from '../../run/command.ts';
import { threadRunId } from '../../run/identity.ts';
import { hasCode } from '../../values/error-data.ts';
import { type CommandToSend, encodeCommand } from '../commands.ts';
import type { Encryption } from '../encoding/encryption.ts';
import type { BodyWriter } from '../encoding/stored-body.ts';
import { charsOf } from '../encoding/stored-body.ts';
import { sendCommand } from '../rules/inbox.ts';
import type { ThreadRow, TurnRow } from '../rules/thread-rows.ts';
import type { Arrival, TurnTexts } from '../rules/threads.ts';
import { saveRecord } from '../rules/writes.ts';
import type { StoreWrite } from '../store-driver.ts';
import type { TurnToAdmit } from '../thread-port.ts';
import type { ThreadTexts, TurnContent } from './turn-text.ts';

/** What the decisions about threads need of their store. */
export interface ThreadParts {
  readonly bodies: BodyWriter;
  readonly encryption: Encryption;
  readonly texts: ThreadTexts;
}

/** Makes the texts and the writes to runs of a decision about the thread of this id. */
export function turnTexts(
  { bodies, texts, encryption }: ThreadParts,
  threadId: string,
): TurnTexts<StoreWrite<unknown>> {
  return {
    begun: (turn) => {
      const { record: _, fairKey: __, ...content } = texts.openTurn(turn);
      return texts.sealTurn(content, turn.message);
    },
    firstRecord: (turn, upTo) => {
      const { record, fairKey } = contentIn(texts, turn) ?? {};
      return record && firstRecord(bodies, { ...record, thread: { id: threadId, upTo } }, fairKey);
    },
    agentOf: (turn) => texts.openTurn(turn).agentId,
    cancel: (live, { message }) =>
      commandWrite(encryption, live.runId, {
        id: `interrupt-${message.slice(-64)}`,
        kind: 'cancel',
        reason: 'another message of its thread interrupts it',
      }),
  };
}

/** A damaged text has none. @throws {KEY_MISMATCH} */
function contentIn(texts: ThreadTexts, turn: TurnRow): TurnContent | undefined {
  try {
    return texts.openTurn(turn);
  } catch (error) {
    if (hasCode(error, 'CHECKPOINT_CORRUPT')) return undefined;
    throw error;
  }
}

function firstRecord(bodies: BodyWriter, record: RunCheckpoint, fairKey: string | undefined): StoreWrite<unknown> {
  const body = bodies.ofRecord(record, fairKey);
  const decide = saveRecord(body, { keepsDue: true });
  return { kind: 'save', runId: body.runId, decide, body, size: charsOf(body), hasClaim: false };
}

function commandWrite(encryption: Encryption, runId: string, command: Command): StoreWrite<unknown> {
  const text = encryption.seal(encodeCommand(command), runId, 'command');
  const toSend: CommandToSend = { runId, id: command.id, kind: command.kind, text };
  const decide = sendCommand(toSend, { keepsDue: true });
  return { kind: 'send', runId, decide, size: text.length, hasClaim: false, command: toSend };
}

/** Makes what a decision needs of a message. */
export function arrivalOf(
  parts: ThreadParts,
  turn: TurnToAdmit,
  { message, thread }: { readonly message: string; readonly thread: ThreadRow },
): Arrival<StoreWrite<unknown>> {
  const { texts, encryption } = parts;
  const { callerId, id, messageId, digest, record, text, fairKey } = turn;
  const content = { id: messageId, digest, agentId: record.meta.agentId };
  return {
    ...turnTexts(parts, id),
    message,
    onBusy: turn.onBusy,
    maxQueued: turn.maxQueued,
    thread,
    now: record.updatedAt,
    isEqual: (stored) => texts.openTurn(stored).digest === digest,
    queuedText: (runId) => {
      const queued: TurnContent = { ...content, fairKey, record: { ...record, meta: { ...record.meta, runId } } };
      return texts.sealTurn(queued, message);
    },
    runId: (attempt) => threadRunId({ callerId, threadId: id, messageId }, attempt),
    steer: ({ runId }) =>
      text === undefined
        ? undefined
        : commandWrite(encryption, runId, { id: `message-${message.slice(-64)}`, kind: 'steer', text, messageId }),
  };
}
