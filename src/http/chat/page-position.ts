import type { StepChunk, UiChunk } from './ui-chunk.ts';

/**
 * What a page already has of a message.
 * `cut`: everything up to some place in this step, which it gets again whole. 0 = no step yet.
 * `answered`: all of the step in which a person answered calls. `waits`: those that are answered now, with their calls. `outputs`:
 * the calls for which the page shows a person's answer as the output.
 */
export type PagePosition =
  | { readonly kind: 'cut'; readonly step: number }
  | {
      readonly kind: 'answered';
      readonly calls: ReadonlySet<string>;
      readonly waits: ReadonlyMap<string, string>;
      readonly outputs: ReadonlySet<string>;
    };

export type View = (chunks: readonly StepChunk[]) => readonly StepChunk[];

/** Makes the function that leaves out what a page has. */
export function viewFrom(position: PagePosition | undefined): View {
  if (!position) return (chunks) => chunks;
  return position.kind === 'cut' ? afterCut(position.step) : afterAnswer(position);
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

/** After an answer the page gets the state of each call of that step, and what follows. */
function afterAnswer({ calls, waits, outputs }: Extract<PagePosition, { kind: 'answered' }>): View {
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
    if (chunk.type === 'start' || chunk.type === 'data-pawl-run') return [placed];
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
