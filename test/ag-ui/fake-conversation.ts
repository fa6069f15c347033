import type { Conversation, Turn } from '../../src/ag-ui/follow.ts';
import type { RecordedMessage } from '../../src/ag-ui/messages.ts';
import type { OpenWaits } from '../../src/ag-ui/open-waits.ts';
import type { Standing } from '../../src/ag-ui/run-events.ts';
import type { JournalEvent, RunEventBody } from '../../src/index.ts';
import type { Clock } from '../../src/values/clock.ts';

/** A clock whose timers fire at once: a pause is what no event fills. */
export const hastyClock: Clock = {
  now: () => 1_000,
  monotonic: () => 0,
  setTimeout: (callback) => setTimeout(callback, 2),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
};

/** The events of one run, as a journal gives them: those that are there, then those that come. */
export class FakeRun {
  readonly #events: JournalEvent[] = [];
  readonly #runId: string;
  #error: Error | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(runId: string, ...bodies: readonly RunEventBody[]) {
    this.#runId = runId;
    this.add(...bodies);
  }

  add(...bodies: readonly RunEventBody[]): this {
    for (const body of bodies) {
      const seq = this.#events.length + 1;
      this.#events.push({ ...body, runId: this.#runId, seq, at: 0, cursor: String(seq) } as JournalEvent);
    }
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
    return this;
  }

  fail(error: Error): void {
    this.#error = error;
    this.#wake.resolve();
  }

  async *read(): AsyncGenerator<JournalEvent, void, undefined> {
    for (let at = 0; ; ) {
      const event = this.#events[at];
      if (event) {
        at += 1;
        yield event;
        if (event.type === 'run.ended') return;
      } else if (this.#error) throw this.#error;
      else await this.#wake.promise;
    }
  }
}

/** A conversation whose turns, messages and waits the test sets. */
export class FakeConversation implements Conversation {
  readonly runs = new Map<string, FakeRun>();
  recorded: RecordedMessage[] = [];
  turns: Turn[] = [];
  open: OpenWaits = { persons: [], hasChildren: false };
  status: Standing = 'other';
  /** How often the waits were read. */
  looks = 0;
  /** How often the messages were read. */
  reads = 0;

  async place(): Promise<() => void> {
    return () => {};
  }

  async messages(): Promise<readonly RecordedMessage[]> {
    this.reads += 1;
    return this.recorded;
  }

  async turn(runId: string): Promise<Turn | undefined> {
    return this.turns.find((turn) => turn.runId === runId);
  }

  async newest(): Promise<Turn | undefined> {
    return this.turns.findLast(({ state }) => state !== 'queued');
  }

  events(runId: string): AsyncIterable<JournalEvent> {
    const run = this.runs.get(runId);
    return run ? run.read() : gone();
  }

  async waits(): Promise<OpenWaits> {
    this.looks += 1;
    return this.open;
  }

  async standing(): Promise<Standing> {
    return this.status;
  }
}

// biome-ignore lint/correctness/useYield: it ends before its first event
async function* gone(): AsyncGenerator<JournalEvent, void, undefined> {
  throw Object.assign(new Error('no events'), { code: 'JOURNAL_GONE' });
}
