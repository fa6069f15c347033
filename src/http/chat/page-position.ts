import type { StepChunk, UiChunk } from './ui-chunk.ts';

/**
 * What a page already has of a message.
 * `cut`: everything up to some place in this step, which it gets again whole. 0 = no step yet. `asked`: open questions of the
 * step that it shows. Then it has the whole message of the step, and keeps it: a person may have answered meanwhile.
 * `answered`: all of the step in which a person answered calls, `step`, its last one. `waits`: those that are answered now, with their calls. `outputs`:
 * the calls for which the page shows a person's answer as the output.
 */
export type PagePosition =
  | { readonly kind: 'cut'; readonly step: number; readonly asked?: readonly string[] }
  | {
      readonly kind: 'answered';
      readonly step: number;
      readonly calls: ReadonlySet<string>;
      readonly waits: ReadonlyMap<string, string>;
      readonly outputs: ReadonlySet<string>;
    };

export type View = (chunks: readonly StepChunk[]) => readonly StepChunk[];

/** Makes the function that leaves out what a page has. */
export function viewFrom(position: PagePosition | undefined): View {
  if (!position) return (chunks) => chunks;
  if (position.kind === 'answered') return afterAnswer(position);
  const { step, asked = [] } = position;
  return asked.length > 0 ? afterQuestions(step, asked) : afterCut(step);
}

const isLast = ({ type }: UiChunk): boolean => type === 'finish' || type === 'abort' || type === 'error';

/** A cut leaves the page with any part of its last step: that step is taken back and sent again. */
function afterCut(from: number): View {
  let isOpen = from === 0;
  const see = (placed: StepChunk): readonly StepChunk[] => {
    const { step, chunk } = placed;
    if (chunk.type === 'start') return [];
    if (isOpen) return [placed];
    if (step < from && !isLast(chunk)) return [];
    isOpen = true;
    const reset: StepChunk = { step: from, chunk: { type: 'reset-step' } };
    return step === from && chunk.type === 'start-step' ? [reset] : [reset, placed];
  };
  return (chunks) => chunks.flatMap(see);
}

/**
 * A page that shows questions gets the state of the calls of that step, and what comes behind its questions. Its own answer to one,
 * which it may not have sent, stays.
 */
function afterQuestions(from: number, asked: readonly string[]): View {
  const unseen = new Set(asked);
  /** The calls of these questions: the page has all of them up to there. */
  const ofAsked = new Set<string>();
  const callOf = new Map<string, string>();
  let held: StepChunk[] = [];
  let isOpen = false;
  const isNews = ({ chunk }: StepChunk): boolean => {
    const callId = 'toolCallId' in chunk ? chunk.toolCallId : 'approvalId' in chunk && callOf.get(chunk.approvalId);
    return isState(chunk) && !(callId && ofAsked.has(callId));
  };
  const open = (): readonly StepChunk[] => {
    isOpen = true;
    const all = held;
    held = [];
    return all;
  };
  const see = (placed: StepChunk): readonly StepChunk[] => {
    const { step, chunk } = placed;
    if (isOpen) return [placed];
    if (step > from || isLast(chunk)) {
      // A question is not there any more.
      const begin: StepChunk = { step: from, chunk: { type: 'reset-step' } };
      return [begin, ...open().filter((each) => each.chunk.type !== 'start-step'), placed];
    }
    if (step < from) return [];
    held.push(placed);
    if (chunk.type === 'tool-approval-request') callOf.set(chunk.approvalId, chunk.toolCallId);
    const question = questionIn(chunk);
    if (!question || !unseen.delete(question.waitId)) return [];
    ofAsked.add(question.callId);
    return unseen.size === 0 ? open().filter(isNews) : [];
  };
  return (chunks) => chunks.flatMap(see);
}

/** The question with which this chunk is complete. */
function questionIn(chunk: UiChunk): { readonly waitId: string; readonly callId: string } | undefined {
  if (chunk.type === 'tool-approval-request') return { waitId: chunk.approvalId, callId: chunk.toolCallId };
  if (chunk.type !== 'data-pawl-wait' || chunk.data.kind !== 'question') return undefined;
  return { waitId: chunk.id, callId: String(chunk.data.callId) };
}

/** Whether a chunk says how something is: a page that has it already changes nothing. */
function isState({ type }: UiChunk): boolean {
  return (
    type.startsWith('tool-output-') ||
    type.startsWith('tool-approval-') ||
    type.startsWith('data-') ||
    type === 'tool-input-available' ||
    type === 'tool-input-error'
  );
}

/** After an answer the page gets the state of each call of that step, and what follows. */
function afterAnswer({ step: from, calls, waits, outputs }: Extract<PagePosition, { kind: 'answered' }>): View {
  const asked = new ApprovalsOfPage(waits);
  let answered: number | undefined;
  const ofStep = (chunk: UiChunk): boolean => {
    switch (chunk.type) {
      case 'tool-input-available':
        return outputs.has(chunk.toolCallId);
      case 'tool-approval-request':
        return asked.isNew(chunk);
      case 'tool-approval-response':
        return asked.isForPage(chunk.approvalId);
      case 'finish-step':
      case 'tool-input-error':
      case 'steering-message':
      case 'data-pawl-run':
      case 'data-pawl-wait':
        return true;
      default:
        return chunk.type.startsWith('tool-output-') || isLast(chunk);
    }
  };
  const see = (placed: StepChunk): readonly StepChunk[] => {
    const { step, chunk } = placed;
    // The page has all steps before: a connection that is lost here continues in its last one.
    if (chunk.type === 'start' || chunk.type === 'data-pawl-run') return [{ step: Math.max(step, from), chunk }];
    if (answered === undefined && chunk.type === 'tool-input-available' && calls.has(chunk.toolCallId)) answered = step;
    if (answered === undefined) return isLast(chunk) ? [placed] : [];
    return step > answered || ofStep(chunk) ? [placed] : [];
  };
  return (chunks) => chunks.flatMap(see);
}

/** The approvals of a step whose calls a page shows as answered: it has these questions, and those before them. */
class ApprovalsOfPage {
  readonly #answered: Map<string, string>;
  /** The calls whose answered question has not come yet. */
  readonly #quiet: Set<string>;
  readonly #callOf = new Map<string, string>();

  constructor(answered: ReadonlyMap<string, string>) {
    this.#answered = new Map(answered);
    this.#quiet = new Set(answered.values());
  }

  /** Whether the page lacks a question. One that comes twice is asked again. */
  isNew({ approvalId, toolCallId }: Extract<UiChunk, { type: 'tool-approval-request' }>): boolean {
    this.#callOf.set(approvalId, toolCallId);
    if (!this.#answered.delete(approvalId)) return !this.#quiet.has(toolCallId);
    this.#quiet.delete(toolCallId);
    return false;
  }

  /** Whether a response belongs to a question that the page shows. */
  isForPage(approvalId: string): boolean {
    return !this.#quiet.has(this.#callOf.get(approvalId) ?? '');
  }
}
