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
import type { JournalPage, ReadEventsOptions } from '../port.ts';
import type { JournalDriver } from '../store-driver.ts';

interface Reading {
  readonly journal: JournalDriver;
  readonly encryption: Encryption;
}

const noPieces: StoredPieces = new Map();

/** Returns a page of a run's journal, with the content that only the record holds; null without a record. */
export async function storedEvents(
  reading: Reading,
  runId: string,
  { after = 0, limit }: ReadEventsOptions,
): Promise<JournalPage | null> {
  const { journal, encryption } = reading;
  const rows = await journal.read(runId, { after, limit });
  if (!rows) return null;
  const entries = entriesOf(runId, rows, { after, encryption });
  const next = entries.at(-1)?.place ?? after;
  if (!entries.some(needsContent)) return { entries, next };
  const content = await contentOf(reading, runId, entries);
  if (!content) return null;
  return { entries: entries.flatMap((entry) => withContent(entry, content) ?? []), next };
}

async function contentOf(
  { journal, encryption }: Reading,
  runId: string,
  entries: readonly JournalEntry[],
): Promise<RecordContent | undefined> {
  const texts = new RunTexts(encryption, runId);
  const messages = new Map<number, Message>();
  const range = messagesFor(entries) ?? { from: 0, to: 0 };
  const stored = await journal.content(runId, range, (first, text, pieces = noPieces) => {
    const row = parseStored(texts.whole(text, messagesFrom(first), pieces), 'messages');
    if (!isMessages(row)) throw new CheckpointCorruptError('this record is damaged: its messages cannot be read');
    for (const [i, message] of (row as Message[]).entries()) messages.set(first + i, message);
  });
  if (!stored) return undefined;
  const { head, pieces = noPieces, step = [], messageCount } = stored;
  const steps = step.map((text, place) => texts.open(text, stepText(place)));
  return contentIn(withStep(texts.whole(head, 'head', pieces), steps), { messages, count: messageCount });
}

/** Takes from a head what events need of it. @throws {CheckpointCorruptError} */
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
