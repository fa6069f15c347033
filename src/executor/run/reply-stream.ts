import type { ReplyPiece } from '../../model/reply-pieces.ts';
import type { RunEventBody } from '../../run/events/body.ts';
import type { Progress } from '../../run/progress.ts';
import type { ModelSource } from '../../run/reply.ts';
import type { AssistantMessage } from '../../values/message.ts';

/** Further sources of one reply are not published. */
const MAX_SOURCES = 1_000;

type Shown = Exclude<ReplyPiece, { type: 'source' | 'end' | 'void' }>;

/** The parts of a run that publish a reply. */
export interface StreamingRun {
  readonly services: { readonly config: { readonly defaults: { readonly maxReplyChars: number } } };
  publish(body: RunEventBody): void;
  /** No more text of this block comes: a buffered incomplete line is published. */
  endText(block: number): void;
}

/**
 * Publishes the reply of the model while it arrives. A second attempt, or a message with other parts than were shown, voids the
 * pieces with `step.reset`.
 */
export class ReplyStream {
  readonly #run: StreamingRun;
  /** The step whose pieces were published; 0 = none since the last reset. */
  #shownStep = 0;
  /** The newest text block that was shown. */
  #textBlock = 0;
  /** The message does not have the pieces as they were shown. */
  #isVoid = false;
  /** The part of the reply that an earlier request gave; a further one adds to it. */
  #standing: AssistantMessage | undefined;
  #sources: ModelSource[] = [];
  /** The step that the last attempt was for, the characters that it showed, and those of the failed attempts before it. */
  #step = 0;
  #shownChars = 0;
  #failedChars = 0;
  /** The step of complete sources, which its record does not have yet. */
  #sourcesStep = 0;

  constructor(run: StreamingRun) {
    this.#run = run;
  }

  /** Whether a part of the reply stands: a further request adds to it. */
  get hasPart(): boolean {
    return this.#standing !== undefined;
  }

  /** An attempt begins. Pieces of an earlier one are void; the step is shown again from its beginning. */
  begin(step: number, standing?: AssistantMessage): void {
    if (standing !== undefined) {
      this.#continue(step, standing);
      return;
    }
    this.#standing = undefined;
    this.#sources = [];
    this.#textBlock = 0;
    this.#isVoid = false;
    if (this.#shownStep === step) this.#run.publish({ type: 'step.reset', step });
    this.#shownStep = 0;
    this.#failedChars = this.#step === step ? this.#failedChars + this.#shownChars : 0;
    this.#shownChars = 0;
    this.#step = step;
  }

  /** Another request of the same reply: the parts that stand are shown already, unless a failed request added to them. */
  #continue(step: number, standing: AssistantMessage): void {
    const isFirst = this.#standing !== standing;
    this.#standing = standing;
    if (isFirst || this.#shownStep !== step) return;
    this.#textBlock = 0;
    this.#isVoid = false;
    this.#showWhole(step, standing);
  }

  take(step: number, piece: ReplyPiece): void {
    if (piece.type === 'end') this.#run.endText(piece.block);
    else if (piece.type === 'void') this.#isVoid = true;
    else if (piece.type === 'source') {
      if (this.#sources.length < MAX_SOURCES) this.#sources.push(piece.source);
    } else if (this.#isInOrder(piece) && this.#hasRoom(piece)) {
      this.#shownStep = step;
      this.#run.publish(eventOf(step, piece));
    }
  }

  /**
   * The pieces of failed attempts stay in the journal: all of a step may have the characters of one reply. Behind them an attempt is
   * shown when it is complete.
   */
  #hasRoom(piece: Shown): boolean {
    const chars = piece.type === 'file' ? 0 : piece.text.length;
    const { maxReplyChars } = this.#run.services.config.defaults;
    if (this.#failedChars > 0 && this.#failedChars + this.#shownChars + chars > maxReplyChars) this.#isVoid = true;
    else this.#shownChars += chars;
    return !this.#isVoid || this.#failedChars === 0;
  }

  /** Texts are shown in the order of blocks: a reader's place is one block and one offset. */
  #isInOrder(piece: Shown): boolean {
    if (piece.type !== 'text' && piece.type !== 'reasoning') return true;
    if (piece.block < this.#textBlock) this.#isVoid = true;
    else this.#textBlock = piece.block;
    return piece.block === this.#textBlock;
  }

  /**
   * The reply is complete.
   * @param message as the run records it
   * @param shown the message that the model sent, if a middleware returned another reply
   */
  complete(step: number, message: AssistantMessage, shown: AssistantMessage = message): void {
    const isSame = message === shown || JSON.stringify(message.content) === JSON.stringify(shown.content);
    if (isSame) this.#sourcesStep = step;
    else this.#sources = [];
    if ((isSame && !this.#isVoid) || this.#shownStep !== step) return;
    this.#showWhole(step, message);
  }

  #showWhole(step: number, { content }: AssistantMessage): void {
    this.#run.publish({ type: 'step.reset', step });
    this.#shownStep = step;
    for (const [block, part] of content.entries()) {
      if ((part.type !== 'text' && part.type !== 'reasoning') || part.text === '') continue;
      this.#run.publish({ type: 'model.delta', step, block, offset: 0, kind: part.type, text: part.text });
      this.#run.endText(block);
      this.#textBlock = block;
    }
  }

  /** Publishes the sources of the step that a progress has for the first time, before the save of that progress. */
  publishSources({ iteration, openStep }: Pick<Progress, 'iteration' | 'openStep'>): void {
    const step = this.#sourcesStep;
    if (this.#sources.length === 0 || step > iteration + (openStep ? 1 : 0)) return;
    for (const source of this.#sources.splice(0)) this.#run.publish({ type: 'model.source', step, source });
  }
}

/** Its fields are named: an answer has thousands of pieces, and a spread costs more. */
function eventOf(step: number, piece: Shown): RunEventBody {
  const { block } = piece;
  if (piece.type === 'file') return { type: 'model.file', step, block, mediaType: piece.mediaType };
  const { offset, text } = piece;
  if (piece.type !== 'tool-input') return { type: 'model.delta', step, block, offset, kind: piece.type, text };
  return { type: 'tool.input', step, block, offset, callId: piece.callId, name: piece.name, text };
}
