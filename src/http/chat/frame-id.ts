import type { StepChunk } from './ui-chunk.ts';

/** How much of a message a page has. */
export interface FramePlace {
  readonly runId: string;
  /** The step of the last chunk; `end`: the page has all. */
  readonly step: number | 'end';
  /** The open questions of that step which the page shows: it has the whole message of the step. */
  readonly asked: readonly string[];
}

/** With more open questions than this, a page gets its step again, and its person is asked again. */
const MAX_ASKED = 16;
const MAX_ASKED_CHARS = 2_000;

/** The open questions of the newest step, as a page shows them. */
export class AskedQuestions {
  /** The calls, by the ids of their waits. */
  readonly #open = new Map<string, string>();

  see({ chunk }: StepChunk): void {
    switch (chunk.type) {
      case 'start-step':
      case 'reset-step':
        this.#open.clear();
        break;
      case 'tool-approval-request':
        this.#open.set(chunk.approvalId, chunk.toolCallId);
        break;
      case 'tool-approval-response':
        this.#open.delete(chunk.approvalId);
        break;
      case 'data-pawl-wait': {
        const { kind, state, callId } = chunk.data;
        if (state !== 'open') this.#open.delete(chunk.id);
        else if (kind === 'question') this.#open.set(chunk.id, String(callId));
        break;
      }
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        for (const [waitId, callId] of this.#open) if (callId === chunk.toolCallId) this.#open.delete(waitId);
    }
  }

  get ids(): readonly string[] {
    return this.#open.size <= MAX_ASKED ? [...this.#open.keys()] : [];
  }
}

/** Returns the id of a frame: its run, its step, and the questions that the page shows then. */
export function frameId({ runId, step, asked }: FramePlace): string {
  const waits = asked.map(encodeURIComponent).join(',');
  return `${encodeURIComponent(runId)}/${step}${waits === '' ? '' : `/${waits}`}`;
}

/** Reads the id of the last frame that a page has; undefined for a text that is none. */
export function placeInFrame(id: string): FramePlace | undefined {
  const [run = '', place = '', waits = '', ...more] = id.split('/');
  if (more.length > 0 || waits.length > MAX_ASKED_CHARS || !/^(?:\d{1,9}|end)$/.test(place)) return undefined;
  try {
    const asked = waits === '' ? [] : waits.split(',').map(decodeURIComponent);
    if (place === 'end' && asked.length > 0) return undefined;
    return { runId: decodeURIComponent(run), step: place === 'end' ? place : Number(place), asked };
  } catch {
    return undefined;
  }
}
