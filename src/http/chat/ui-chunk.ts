import type { JsonObject } from '../../values/json.ts';
import type { Usage } from '../../values/usage.ts';

/** The parts of a message of `useChat` that hold data of Pawl. */
export type DataChunk =
  | { readonly type: 'data-pawl-run'; readonly id: string; readonly data: RunDataPart }
  | { readonly type: 'data-pawl-wait'; readonly id: string; readonly data: WaitDataPart };

/** What a page knows about the run behind a message. */
export interface RunDataPart {
  readonly runId: string;
  readonly status: 'running' | 'waiting' | 'parked' | 'ok' | 'error' | 'timeout' | 'cancelled' | 'killed';
  /** The earliest time at which a waiting run continues by itself, wall clock, ms. */
  readonly wakeAt?: number;
  /** Why it is parked. */
  readonly code?: string;
  /** The model is away. */
  readonly retry?: JsonObject;
  /** A limit gives its next request a later turn: `turnAt`, wall clock, ms, and the `rule` that holds it. */
  readonly limit?: JsonObject;
}

/** What a page knows about one wait of a call. The other fields depend on its kind. */
export interface WaitDataPart extends JsonObject {
  readonly id: string;
  readonly kind: string;
  readonly state: 'open' | 'answered' | 'expired' | 'withdrawn';
}

/**
 * The chunks of the UI message stream of AI SDK 7 that Pawl sends. They are defined here: Pawl compiles without the
 * package. A test compares them with its own type and schema.
 */
export type UiChunk =
  | { readonly type: 'start'; readonly messageId: string }
  | { readonly type: 'start-step' | 'finish-step' | 'reset-step' | 'abort' }
  | { readonly type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | { readonly type: 'tool-input-start'; readonly toolCallId: string; readonly toolName: string }
  | { readonly type: 'tool-input-delta'; readonly toolCallId: string; readonly inputTextDelta: string }
  | {
      readonly type: 'tool-input-available';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly providerExecuted?: true;
    }
  | {
      readonly type: 'tool-input-error';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly errorText: string;
    }
  | {
      readonly type: 'tool-output-available';
      readonly toolCallId: string;
      readonly output: unknown;
      readonly preliminary?: true;
      readonly providerExecuted?: true;
    }
  | {
      readonly type: 'tool-output-error';
      readonly toolCallId: string;
      readonly errorText: string;
      readonly providerExecuted?: true;
    }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | {
      readonly type: 'tool-approval-request';
      readonly approvalId: string;
      readonly toolCallId: string;
      readonly reason?: string;
      readonly approvalDescriptor?: JsonObject;
      readonly isAutomatic?: true;
    }
  | {
      readonly type: 'tool-approval-response';
      readonly approvalId: string;
      readonly approved: boolean;
      readonly reason?: string;
    }
  | { readonly type: 'file' | 'reasoning-file'; readonly url: string; readonly mediaType: string }
  | { readonly type: 'source-url'; readonly sourceId: string; readonly url: string; readonly title?: string }
  | {
      readonly type: 'source-document';
      readonly sourceId: string;
      readonly mediaType: string;
      readonly title: string;
      readonly filename?: string;
    }
  | { readonly type: 'custom'; readonly kind: `${string}.${string}` }
  | {
      readonly type: 'steering-message';
      readonly id: string;
      readonly parts: { type: 'text'; text: string }[];
    }
  | DataChunk
  | {
      readonly type: 'finish';
      readonly finishReason: UiFinishReason;
      readonly messageMetadata?: { readonly usage: Usage };
    }
  | { readonly type: 'error'; readonly errorText: string };

/** `tool-calls`: a person must act. `interrupted`: the page must not send by itself. */
export type UiFinishReason = 'stop' | 'length' | 'content-filter' | 'other' | 'tool-calls' | 'interrupted';

/** A chunk, and the step of the message in which it arrives; 0 = before the first. */
export interface StepChunk {
  readonly step: number;
  readonly chunk: UiChunk;
}
