import { createStore } from '@xstate/store';
import { change, type Writable } from '../../run/change.ts';
import { type Clock, systemClock } from '../../values/clock.ts';
import { duration } from '../ui/format.ts';
import type { Output } from '../ui/output.ts';
import { withoutKeys } from '../ui/own-secrets.ts';
import { cutToWidth, displayWidth, drawableLine } from '../ui/terminal-text.ts';
import { fitsColumns, renderColumns } from './board-columns.ts';
import { type BoardState, isAtWork, type ModelView, type Size } from './board-state.ts';
import { renderTabs } from './board-tabs.ts';
import { markOfBoard, type Paint, summaryOnBoard } from './board-texts.ts';
import { tailOf } from './wrap.ts';

/** The initial state of a board. */
export interface BoardStart {
  readonly prompt: string;
  /** Ids of the models, in the order of the board. */
  readonly models: readonly string[];
  readonly clock?: Clock;
}

/** The part of the output that a board needs. */
export type BoardOutput = Pick<Output, 'say' | 'show' | 'paint' | 'size' | 'hideCursor'>;

const REDRAW_MS = 100;
/** The most characters of an answer that a board keeps: more than any terminal shows. */
const TAIL = 16_384;
/** Lines above the board that stay free, if there is room, for messages. */
const SAID_LINES = 2;

/** The last known state of a model. */
interface Heard {
  readonly view: ModelView;
  /** Monotonic, ms. */
  readonly at: number;
}

interface Board {
  readonly models: readonly Heard[];
  readonly frame: number;
  readonly focus: number;
}

/** The state of the board; only these transitions change it. @param at monotonic, ms */
function boardStore(ids: readonly string[], at: number) {
  return createStore({
    context: { models: ids.map((id) => ({ view: waiting(id), at })), frame: 0, focus: 0 } as Board,
    on: {
      update: (board, heard: { view: ModelView; at: number }) =>
        change(board, ({ models }) => {
          const place = models.findIndex(({ view }) => view.id === heard.view.id);
          models[place === -1 ? models.length : place] = { view: heard.view as Writable<ModelView>, at: heard.at };
        }),
      moveFocus: (board, { by }: { by: number }) =>
        change(board, (draft) => {
          const count = Math.max(1, draft.models.length);
          draft.focus = (((draft.focus + by) % count) + count) % count;
        }),
      draw: (board) =>
        change(board, (draft) => {
          draft.frame += 1;
        }),
    },
  });
}

/** Redraws the board of `pawl ask` on a terminal ten times a second: each frame shows all changes since the last one. */
export class LiveBoard {
  readonly #output: BoardOutput;
  readonly #prompt: string;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #board: ReturnType<typeof boardStore>;
  readonly #cursor: Disposable;
  #timer: unknown;
  #hasEnded = false;

  constructor(output: BoardOutput, { prompt, models, clock = systemClock }: BoardStart) {
    this.#output = output;
    this.#prompt = prompt;
    this.#clock = clock;
    this.#startedAt = clock.monotonic();
    this.#board = boardStore(models, this.#startedAt);
    this.#cursor = output.hideCursor();
    this.#draw();
  }

  update(view: ModelView): void {
    this.#board.trigger.update({ view, at: this.#clock.monotonic() });
  }

  moveFocus(by: number): void {
    this.#board.trigger.moveFocus({ by });
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#clock.clearTimeout(this.#timer);
    this.#output.show('');
    this.#cursor[Symbol.dispose]();
    for (const { view } of this.#board.getSnapshot().context.models) {
      const { style, text } = markOfBoard(view, 0);
      this.#output.say(`${this.#output.paint(style, text)} ${summaryOnBoard(view, ' · ')}`);
    }
  }

  #draw(): void {
    const { frame, focus, ...board } = this.#board.getSnapshot().context;
    const models = board.models.map((each) => this.#shownNow(each));
    const elapsedMs = this.#clock.monotonic() - this.#startedAt;
    const state = { prompt: this.#prompt, models, elapsedMs, frame, focus };
    const { columns, rows } = this.#output.size;
    const size = { columns, rows: rows < 16 ? rows : rows - SAID_LINES };
    const lines = renderBoard(state, size, (style, text) => this.#output.paint(style, text));
    this.#output.show([...lines, '']);
    this.#board.trigger.draw();
    this.#timer = this.#clock.setTimeout(() => this.#draw(), REDRAW_MS);
  }

  /** The time of a model increases between its updates. Secrets are removed before the text is wrapped, which may split them. */
  #shownNow({ view, at }: Heard): ModelView {
    const isRunning = isAtWork(view) && view.state !== 'waiting';
    const latencyMs = view.latencyMs + (isRunning ? this.#clock.monotonic() - at : 0);
    const error = view.error === undefined ? {} : { error: withoutKeys(view.error) };
    return { ...view, ...error, latencyMs, text: withoutKeys(tailOf(view.text, TAIL)) };
  }
}

function waiting(id: string): ModelView {
  return {
    id,
    state: 'waiting',
    text: '',
    steps: 0,
    inputTokens: 0,
    outputTokens: 0,
    costUsd: 0,
    latencyMs: 0,
    toolCalls: {},
    writes: 0,
  };
}

const plain: Paint = (_, text) => text;

/**
 * Draws a frame of the board of `pawl ask`: models in columns if there is room, otherwise a line for each. Only `paint`
 * adds control sequences.
 * @returns lines no wider than `size.columns`, at most `size.rows - 1` of them: the cursor needs one too
 * @example renderBoard(state, { columns: 160, rows: 40 }).join('\n')
 */
export function renderBoard(state: BoardState, size: Size, paint: Paint = plain): string[] {
  const { columns } = size;
  const rows = size.rows - 1;
  if (rows < 1 || columns < 1) return [];
  const title = [titleOf(state, columns, paint), ''].slice(0, titleLines(state, rows));
  const inner = { columns, rows: rows - title.length };
  const render = fitsColumns(state.models.length, inner) ? renderColumns : renderTabs;
  return [...title, ...render(state, inner, paint)];
}

/** With few lines, the models are more important than the prompt. */
function titleLines({ models }: BoardState, rows: number): number {
  if (rows < 6) return 0;
  return rows < models.length + 8 ? 1 : 2;
}

function titleOf({ prompt, elapsedMs }: BoardState, columns: number, paint: Paint): string {
  const time = cutToWidth(duration(elapsedMs), columns);
  const room = columns - displayWidth(time) - 2;
  if (room < 1) return time;
  const question = cutToWidth(drawableLine(prompt.slice(0, 2_000)), room);
  const between = ' '.repeat(room + 2 - displayWidth(question));
  return (question === '' ? '' : paint('bold', question)) + between + paint('dim', time);
}
