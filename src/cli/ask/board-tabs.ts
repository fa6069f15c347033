import { dollars, duration } from '../ui/format.ts';
import { cutToWidth, displayWidth } from '../ui/terminal-text.ts';
import { type BoardState, isAtWork, type ModelView, type Size } from './board-state.ts';
import { deedsOf, doingOf, markOfBoard, nameOnBoard, type Paint, stateOnBoard, tokensOnBoard } from './board-texts.ts';
import { firstLines, lastLines } from './wrap.ts';

/** The least lines of the focused answer, even with many models. */
const LEAST_TEXT = 2;
/** With this many lines besides those of the models, some stay empty. */
const SPACIOUS = 6;
const STATE_ROOM = 'calling tools';

/**
 * Draws the board of `pawl ask` on a narrow terminal: a line for each model, and below them the end of the focused answer.
 */
export function renderTabs(state: BoardState, { columns, rows }: Size, paint: Paint): string[] {
  const { models } = state;
  const focus = Math.min(Math.max(0, Math.trunc(state.focus) || 0), models.length - 1);
  const front = models[focus];
  if (!front) return [];
  const gap = rows < models.length + SPACIOUS ? [] : [''];
  const tabs = models.length > 1 ? [paint('bold', tabRow(models, focus, columns)), ...gap] : [];
  const room = Math.max(1, rows - tabs.length - gap.length - LEAST_TEXT);
  const lines = modelLines({ ...state, focus }, { columns, rows: room });
  const head = [...lines.map(({ style, text }) => paint(style, text)), ...gap, ...tabs];
  return [...head, ...answerLines(front, { columns, rows: rows - head.length }, paint)].slice(0, Math.max(0, rows));
}

/** The names; the focused one is in brackets, and always visible. */
function tabRow(models: readonly ModelView[], focus: number, columns: number): string {
  const tabs = models.map((view, index) => (index === focus ? `[${nameOnBoard(view)}]` : ` ${nameOnBoard(view)} `));
  let first = 0;
  const before = () => displayWidth(tabs.slice(first, focus + 1).join('')) + (first > 0 ? 2 : 0);
  while (first < focus && before() > columns) first += 1;
  return cutToWidth(`${first > 0 ? '… ' : ''}${tabs.slice(first).join('')}`.trimEnd(), columns);
}

/** If there are too many models, those around the focused one. */
function modelLines({ models, focus, frame }: BoardState, { columns, rows }: Size) {
  const first = Math.max(0, Math.min(focus - Math.floor(rows / 2), models.length - rows));
  const shown = models.slice(first, first + rows);
  const figures = shown.map(figuresOf);
  const widths = [0, 1, 2].map((index) => Math.max(...figures.map((each) => displayWidth(each[index] ?? ''))));
  const taken = widths.reduce((sum, width) => sum + width + 2, `· ${STATE_ROOM}  `.length);
  const nameWidth = Math.min(
    Math.max(...shown.map((view) => displayWidth(nameOnBoard(view)))),
    Math.max(8, columns - taken),
  );
  return shown.map((view, index) => {
    const name = cutToWidth(nameOnBoard(view), nameWidth);
    const padded = name + ' '.repeat(nameWidth - displayWidth(name));
    const cells = (figures[index] ?? []).map((figure, column) => figure.padStart(widths[column] ?? 0));
    const { style, text } = markOfBoard(view, frame);
    const line = `${text} ${padded}  ${stateOnBoard(view).padEnd(STATE_ROOM.length)}  ${cells.join('  ').trimEnd()}`;
    return { style, text: cutToWidth(line, columns).trimEnd() };
  });
}

function figuresOf(view: ModelView): readonly [string, string, string] {
  return [tokensOnBoard(view), duration(view.latencyMs), view.costUsd > 0 ? dollars(view.costUsd) : ''];
}

/** The end of an answer, its error, and the activity of its model. */
function answerLines(view: ModelView, { columns, rows }: Size, paint: Paint): string[] {
  const doing = isAtWork(view) && view.activity ? [doingOf(view)] : [];
  const deeds = cutToWidth([...doing, ...deedsOf(view)].join(' · '), columns);
  const foot = deeds === '' ? [] : [paint('dim', deeds)];
  const why = firstLines(view.error ?? '', columns, Math.min(4, rows - foot.length)).map((line) => paint('red', line));
  return [...lastLines(view.text, columns, rows - foot.length - why.length), ...why, ...foot];
}
