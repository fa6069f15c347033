import { parseOpenStep, parseOutcome } from '../../record/parse.ts';
import { messagesFor, needsContent, type RecordContent, withContent } from '../../run/journal/content.ts';
import type { JournalEntry } from '../../run/journal/entry.ts';
import { isPhaseOutput, type PhaseOutput } from '../../run/phase.ts';
import { CheckpointCorruptError } from '../../values/errors.ts';
import { isObject } from '../../values/json.ts';
import { isMessages, type Message } from '../../values/message.ts';
import { parseStored } from '../encoding/encode.ts';
import type { Encryption } from '../encoding/encryption.ts';
import { messagesFrom, stepText } from '../encoding/encryption.ts';
import { RunTexts, type StoredPieces } from '../encoding/piece-refs.ts';
import { withStep } from '../encoding/step-texts.ts';
import { entriesOf } from '../encoding/stored-journal.ts';
import type { JournalPage, ReadEventsOptions } from '../journal-port.ts';
import type { JournalDriver } from '../store-driver.ts';

interface Reading {
  readonly journal: JournalDriver;
  readonly encryption: Encryption;
}

/** About how many characters of content a page has; its first entries are always in it. */
const CONTENT_CHARS = 2 ** 18;
/** How many messages are read first: how large they are is not known before. */
const FIRST_MESSAGES = 8;

const noPieces: StoredPieces = new Map();

/**
 * Returns a page of a run's journal, with the content that only the record holds; null without a record. A page with much content
 * has fewer entries: a host has a page for each of its readers.
 */
export async function loadEvents(
  reading: Reading,
  runId: string,
  { after = 0, limit, newest }: ReadEventsOptions,
): Promise<JournalPage | null> {
  const { journal, encryption } = reading;
  const rows = await journal.read(runId, { after, limit, newest });
  if (!rows) return null;
  const entries = entriesOf(runId, rows, { after, encryption });
  const filled: JournalEntry[] = [];
  let [read, chars, atOnce] = [0, 0, FIRST_MESSAGES];
  while (read < entries.length && chars < CONTENT_CHARS) {
    const wanted = partOf(entries.slice(read), atOnce);
    const content = wanted.some(needsContent) ? await contentOf(reading, runId, wanted) : noContent;
    if (!content) return null;
    const end = wanted.findIndex(({ content: place }) => place && place.message + 1 >= content.unread);
    const part = end < 0 ? wanted : wanted.slice(0, end);
    read += part.length;
    filled.push(...part.flatMap((entry) => (needsContent(entry) ? (withContent(entry, content) ?? []) : entry)));
    chars += content.chars;
    const average = content.chars / Math.max(1, content.messages.size);
    atOnce = Math.max(1, Math.floor((CONTENT_CHARS - chars) / Math.max(1, average)));
  }
  return { entries: filled, next: entries[read - 1]?.place ?? after };
}

/** The first entries, up to one that lies more than `most` messages behind: at least one. */
function partOf(entries: readonly JournalEntry[], most: number): readonly JournalEntry[] {
  const first = entries.find(({ content }) => content)?.content?.message ?? 0;
  const end = entries.findIndex(({ content }, i) => i > 0 && content && content.message >= first + most);
  return end < 0 ? entries : entries.slice(0, end);
}

/** The content of some entries, how many characters were read for it, and the first message that was not read. */
type ReadContent = RecordContent & { readonly chars: number; readonly unread: number };

const noContent: ReadContent = {
  ...{ messages: new Map(), count: 0, completedPhases: [], chars: 0 },
  unread: Number.POSITIVE_INFINITY,
};

async function contentOf(
  { journal, encryption }: Reading,
  runId: string,
  entries: readonly JournalEntry[],
): Promise<ReadContent | undefined> {
  const texts = new RunTexts(encryption, runId);
  const messages = new Map<number, Message>();
  const range = messagesFor(entries) ?? { from: 0, to: 0 };
  const needed = (entries.find(({ content }) => content)?.content?.message ?? 0) + 2;
  let [chars, unread] = [0, Number.POSITIVE_INFINITY];
  const stored = await journal.content(runId, range, (first, text, pieces = noPieces) => {
    // The first entry needs its message and the next one. Large messages behind them would hold the event loop for long.
    if (chars >= CONTENT_CHARS && first >= needed) {
      unread = Math.min(unread, first);
      return false;
    }
    chars += text.length;
    const row = parseStored(texts.whole(text, messagesFrom(first), pieces), 'messages');
    if (!isMessages(row)) throw new CheckpointCorruptError('this record is damaged: its messages cannot be read');
    for (const [i, message] of (row as Message[]).entries()) messages.set(first + i, message);
    return true;
  });
  if (!stored) return undefined;
  const { head, pieces = noPieces, step = [], messageCount } = stored;
  const steps = step.map((text, place) => texts.open(text, stepText(place)));
  const found = { messages, count: messageCount };
  return { ...contentIn(withStep(texts.whole(head, 'head', pieces), steps), found), chars, unread };
}

/** Takes from a head what events need of it. @throws {CHECKPOINT_CORRUPT} */
function contentIn(text: string, messages: Pick<RecordContent, 'messages' | 'count'>): RecordContent {
  const head = parseStored(text, 'head');
  if (!isObject(head)) throw new CheckpointCorruptError('this record is damaged: its head is not an object');
  const { openStep, openPhase, completedPhases, outcome } = head;
  const phase = isObject(openPhase) && typeof openPhase.index === 'number' ? openPhase.index : undefined;
  return {
    ...messages,
    phase,
    openStep: openStep === undefined ? undefined : parseOpenStep(openStep),
    completedPhases: Array.isArray(completedPhases) ? (completedPhases as PhaseOutput[]).filter(isPhaseOutput) : [],
    outcome: outcome === undefined ? undefined : parseOutcome(outcome),
  };
}
