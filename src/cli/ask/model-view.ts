import type { ModelResponse, ResponseSnapshot } from '../../fan-out/index.ts';
import type { RunEvent } from '../../index.ts';
import { noText, type TextView, textAfter } from '../../run/journal/reply-view.ts';
import { isObject, type JsonValue } from '../../values/json.ts';
import type { ModelState, ModelView } from './board-state.ts';

/** The most characters of an answer that are kept: no terminal shows more. */
const MAX_TEXT = 65_536;

/** Follows the run events of one model of `pawl ask`, and makes of them what the board shows of it. */
export class AskView {
  #view: ModelView;
  #said: TextView = noText;
  #isLeaving = false;
  readonly #startedAt = performance.now();
  /** Working time of earlier processes, ms. */
  #beforeMs: number;

  /** @param before the model's turn from an earlier process */
  constructor(id: string, before?: ResponseSnapshot) {
    const nothing = { steps: 0, inputTokens: 0, outputTokens: 0, costUsd: 0, toolCalls: {}, writes: 0 };
    const { text = '', latencyMs = 0 } = before ?? {};
    this.#beforeMs = latencyMs;
    this.#view = { id, state: 'waiting', ...nothing, ...(before ? figuresOf(before) : {}), text, latencyMs };
  }

  get view(): ModelView {
    return this.#view;
  }

  heed(event: RunEvent): ModelView {
    const said = textAfter(this.#said, event);
    this.#said = { ...said, text: said.text.slice(-MAX_TEXT) };
    if (event.type === 'step.started') return this.#now({ state: 'thinking', text: '' }, '');
    if (event.type === 'model.retry') return this.#now({ text: '' }, 'tries again');
    if (event.type === 'step.reset') return this.#now({ text: '' });
    if (event.type === 'model.delta' && event.kind === 'text') return this.#now({ text: this.#said.text }, '');
    if (event.type === 'tool.started')
      return this.#now({ state: 'calling-tools' }, activityOf(event.name, event.input));
    return this.#view;
  }

  /** A step is done. */
  turned(snapshot: ResponseSnapshot): ModelView {
    this.#beforeMs = Math.max(0, snapshot.latencyMs - (performance.now() - this.#startedAt));
    return this.#now(figuresOf(snapshot));
  }

  /** The model is being interrupted. */
  leaving(): ModelView {
    this.#isLeaving = true;
    return this.#now({});
  }

  ended(response: ModelResponse): ModelView {
    const { text, error, interrupted, latencyMs } = response;
    const state: ModelState = interrupted ? 'interrupted' : error === undefined ? 'answered' : 'failed';
    const { activity: _, ...view } = this.#view;
    this.#view = { ...view, ...figuresOf(response), state, text, latencyMs, ...(error === undefined ? {} : { error }) };
    return this.#view;
  }

  #now(change: Partial<ModelView>, activity?: string): ModelView {
    const { activity: before, ...view } = { ...this.#view, ...change };
    const doing = activity ?? before ?? '';
    const latencyMs = this.#beforeMs + performance.now() - this.#startedAt;
    const state = this.#isLeaving ? 'leaving' : view.state;
    this.#view = { ...view, state, latencyMs, ...(doing === '' ? {} : { activity: doing }) };
    return this.#view;
  }
}

function figuresOf(snapshot: ResponseSnapshot | ModelResponse) {
  const { steps = 0, inputTokens, outputTokens, costUsd, toolCalls = {}, proposedWrites = [] } = snapshot;
  return { steps, inputTokens, outputTokens, costUsd, toolCalls, writes: proposedWrites.length };
}

/** A call in a few words: the tool, and its main input. */
function activityOf(name: string, input: JsonValue): string {
  const about = isObject(input) ? Object.values(input).find((value) => typeof value === 'string') : undefined;
  return about === undefined ? name : `${name} ${String(about).slice(0, 80)}`;
}
