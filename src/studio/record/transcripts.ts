import type { RunExplanation } from '../../index.ts';
import { type Message, toolCallsOf } from '../../values/message.ts';
import { jsonOf } from './shown-value.ts';

/** Most messages that are read for one answer: a long record is read over several. */
const READ_AT_ONCE = 200;
/** Most calls that are remembered of a run: more runs below it are not shown. */
const MAX_CALLS = 64;
/** Most runs whose messages are remembered. */
const MAX_RUNS = 200;
/** The tools that begin a run. */
const childTools = ['agent__', 'skill__'];

/** What the messages of a run say of it, as far as they were read. */
export interface TranscriptFacts {
  readonly messages: number;
  /** Their size in JSON; an estimate, if not all were read. */
  readonly bytes: number;
  /** The ids of the calls that began runs, the newest last. */
  readonly calls: readonly string[];
}

/** The messages that were read: those from one index up to another one. */
interface Read {
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
  readonly calls: readonly string[];
  /** The newest revision that was seen: a lower one is another record. */
  readonly revision: number;
}

/** Reads some messages of a run, and the rest of what is known of it. */
type ReadMessages = (messages: { readonly from: number; readonly to: number }) => Promise<RunExplanation>;

/**
 * What is known of the messages of runs. An answer reads those that are new since the last one, and some of the older ones until
 * all are read: a tab asks once a second, and a record may have thousands.
 */
export class Transcripts {
  readonly #known = new Map<string, Read>();

  /** Reads a run without its messages, and what they say. */
  async look(runId: string, read: ReadMessages): Promise<{ seen: RunExplanation; facts: TranscriptFacts }> {
    const known = this.#known.get(runId);
    const from = known?.to ?? 0;
    const seen = await read({ from, to: known ? from + READ_AT_ONCE : 0 });
    const { record, messageCount: count = 0 } = seen;
    if (!record) return { seen, facts: { messages: 0, bytes: 0, calls: [] } };
    const { revision } = record;
    const isSame = known && revision >= known.revision && count >= known.to && count <= from + READ_AT_ONCE;
    let all = isSame
      ? joined(known, { ...readOf(record.messages, from), revision })
      : { from: count, to: count, bytes: 0, calls: [], revision };
    if (all.from > 0 && all.calls.length < MAX_CALLS) {
      const older = Math.max(0, all.from - READ_AT_ONCE);
      const { record: before } = await read({ from: older, to: all.from });
      // Another record is there by now: the next answer reads that.
      if (before && before.messages.length === all.from - older) all = joined(readOf(before.messages, older), all);
    }
    this.#remember(runId, all);
    const share = all.to > all.from ? count / (all.to - all.from) : 0;
    return { seen, facts: { messages: count, bytes: Math.round(all.bytes * share), calls: all.calls } };
  }

  #remember(runId: string, read: Read): void {
    this.#known.delete(runId);
    this.#known.set(runId, read);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_RUNS && oldest !== undefined) this.#known.delete(oldest);
  }
}

function readOf(messages: readonly Message[], from: number): Omit<Read, 'revision'> {
  const began = messages.flatMap(toolCallsOf).filter(({ toolName }) => beginsRun(toolName));
  const bytes = messages.reduce((sum, message) => sum + Buffer.byteLength(jsonOf(message) ?? ''), 0);
  return { from, to: from + messages.length, bytes, calls: began.map(({ toolCallId }) => toolCallId) };
}

function joined(first: Omit<Read, 'revision'>, next: Omit<Read, 'revision'> & { readonly revision: number }): Read {
  const calls = [...first.calls, ...next.calls].slice(-MAX_CALLS);
  return { from: first.from, to: next.to, bytes: first.bytes + next.bytes, calls, revision: next.revision };
}

/** Returns whether a call of this tool begins a run. */
export function beginsRun(toolName: string): boolean {
  return childTools.some((prefix) => toolName.startsWith(prefix));
}
