import type { Reading } from '../http/reading.ts';
import type { Executor, Thread } from '../index.ts';
import type { Conversation, Turn } from './follow.ts';
import { newMessage, type PostedAgUiMessage, type PostedInput, type RawMessage } from './input.ts';
import type { RecordedMessage } from './messages.ts';
import { readWaits } from './open-waits.ts';

const PAGE = 1_000;

/** Reads a conversation of an executor for the streams of a caller. */
export function conversationOf(
  executor: Executor,
  thread: Thread,
  { reading, callerId }: { readonly reading: Reading; readonly callerId: string },
): Conversation {
  return {
    messages: async () => {
      // Also what is done with a long conversation afterwards has a turn of its own.
      await reading.turn(callerId);
      const all = await allMessages(thread);
      await reading.turn(callerId);
      return all;
    },
    turn: (runId) => thread.turn({ runId }),
    newest: async () => (await thread.turns({ limit: 1 }))[0],
    place: (signal) => reading.snapshot(callerId, signal),
    events: (runId, signal) => reading.events(executor, runId, { callerId, signal }),
    waits: (runId) => readWaits(executor, runId),
    standing: async (runId) => {
      const status = (await executor.find(runId))?.status;
      return status === 'waiting' || status === 'parked' ? status : 'other';
    },
  };
}

async function allMessages(thread: Thread): Promise<readonly RecordedMessage[]> {
  const all: RecordedMessage[] = [];
  for (let after: number | undefined; ; ) {
    const page = await thread.messages({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    all.push(...page);
    after = page.at(-1)?.index;
    if (page.length < PAGE || after === undefined) return all;
  }
}

/** What is new in a post, and the turn that its stream is about. */
export interface ConversationNews {
  /** The new messages of a person, as one: they have one answer. */
  readonly posted: PostedAgUiMessage | undefined;
  /** The turn to stream where nothing is new. */
  readonly turn: Turn | undefined;
}

/** Most messages at the end of a post that are looked up. */
const MAX_NEW_MESSAGES = 100;

/**
 * Finds what is new in a post. New are the messages of persons behind the last one that the conversation knows: readers send all
 * that they have each time. Without news the stream continues the newest turn, or the last message that waits in the queue.
 */
export async function newsIn({ tail }: PostedInput, thread: Thread): Promise<ConversationNews> {
  const fresh: RawMessage[] = [];
  for (const message of tail.slice(-MAX_NEW_MESSAGES).toReversed()) {
    const turn = await thread.turn(message.id);
    if (!turn) {
      fresh.unshift(message);
      continue;
    }
    if (fresh.length === 0 && turn.state === 'queued') return { posted: undefined, turn };
    break;
  }
  return { posted: newMessage(fresh), turn: (await thread.turns({ limit: 1 }))[0] };
}
