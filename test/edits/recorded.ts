import type { Message } from 'pawl';
import type { OpenStep } from 'pawl/stores/kit';
import { fileTools } from '../../src/edits/file-tools.ts';
import { Overlay } from '../../src/edits/overlay.ts';
import { resultsMessage } from '../../src/run/open-step.ts';
import type { AssistantMessage, ToolOutput } from '../../src/values/message.ts';
import { runToEnd } from '../tool/environment.ts';

/** What a model asks for. */
export interface Asked {
  readonly name: 'list_files' | 'read_file' | 'write_file' | 'delete_file';
  readonly input: { readonly [key: string]: string | number };
}

/** Runs one call as a run does, and gives what the model reads. */
export async function ask(overlay: Overlay, { name, input }: Asked): Promise<ToolOutput> {
  const tool = fileTools(overlay).find((each) => each.name === name);
  const invocation = { callerId: '', channelId: '', guildId: '', parentRunId: '', prompt: '', inputs: {} };
  return runToEnd(
    tool,
    { callId: 'call', name, input, attempt: 1 },
    {
      context: { runId: 'run', idempotencyKey: () => 'key', invocation, runState: () => ({}) as never },
      signal: new AbortController().signal,
      clock: {} as never,
      timeoutMs: Number.POSITIVE_INFINITY,
    },
  );
}

/** The file tools of one run, and its record: an open step until all of its calls have answered. */
export class RecordedRun {
  readonly #root: string;
  overlay: Overlay;
  messages: Message[] = [];
  openStep: OpenStep | undefined;

  constructor(root: string) {
    this.#root = root;
    this.overlay = new Overlay(root);
  }

  get record() {
    return { messages: this.messages, ...(this.openStep ? { openStep: this.openStep } : {}) };
  }

  begin(calls: readonly Asked[]): void {
    const ids = calls.map((call, i) => ({ ...call, callId: `${this.messages.length}-${i}` }));
    const content = ids.map(({ callId, name, input }) => ({
      type: 'tool-call' as const,
      toolCallId: callId,
      toolName: name,
      input,
    }));
    const message: AssistantMessage = { role: 'assistant', content };
    this.openStep = {
      message,
      calls: ids.map((call) => ({ ...call, effect: 'read', state: 'planned', attempt: 0 })),
    };
  }

  /** Runs those calls of the open step that have not answered, side by side. @param isRecorded whose results are stored */
  async work(isRecorded: (i: number) => boolean): Promise<void> {
    const calls = this.openStep?.calls ?? [];
    const results = await Promise.all(
      calls.map(
        (call) => call.result ?? ask(this.overlay, { name: call.name as Asked['name'], input: call.input as never }),
      ),
    );
    if (!this.openStep) return;
    const done = calls.map((call, i) => {
      if (call.state === 'done' || !isRecorded(i)) return call;
      return { ...call, state: 'done' as const, result: results[i] as ToolOutput };
    });
    this.openStep = { ...this.openStep, calls: done };
  }

  end(): void {
    if (!this.openStep) return;
    this.messages.push(this.openStep.message, resultsMessage(this.openStep));
    this.openStep = undefined;
  }

  /** A new process has nothing but the record. */
  restart(): void {
    this.overlay = new Overlay(this.#root);
    this.overlay.replay(JSON.parse(JSON.stringify(this.record)));
  }
}
