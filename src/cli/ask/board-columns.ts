import { duration } from '../ui/format.ts';
import type { Style } from '../ui/output.ts';
import { cutToWidth, displayWidth } from '../ui/terminal-text.ts';
import type { BoardState, ModelView, Size } from './board-state.ts';
import { deedsOf, doingOf, markOfBoard, nameOnBoard, type Paint, spendingOf } from './board-texts.ts';
import { firstLines, lastLines } from './wrap.ts';

const BAR = '│';
const BAR_COLUMNS = 3;
/** Lines of a column that are not the answer: two above it, two below, and an empty one on either side. */
const FRAME_LINES = 6;
const LEAST_LINES = 3;
const LEAST_COLUMNS = 100;
const LEAST_COLUMN = 32;

interface Cell {
  readonly text: string;
  readonly style?: Style;
}

const empty: Cell = { text: '' };

/** Returns whether the terminal has room for a column for each model on the board. */
export function fitsColumns(models: number, { columns, rows }: Size): boolean {
  return columns >= LEAST_COLUMNS && columnWidth(models, columns) >= LEAST_COLUMN && rows >= FRAME_LINES + LEAST_LINES;
}

/** Draws the board of `pawl ask` with the models in columns: name, state, end of the answer, usage. */
export function renderColumns({ models, frame }: BoardState, { columns, rows }: Size, paint: Paint): string[] {
  const width = columnWidth(models.length, columns);
  const texts = models.map((view) => answerCells(view, width, rows - FRAME_LINES));
  const height = Math.max(...texts.map(({ length }) => length));
  const blocks = models.map((view, index) => {
    const text = texts[index] ?? [];
    const free = Array.from({ length: height - text.length }, () => empty);
    return [...headCells(view, frame), empty, ...free, ...text, empty, ...footCells(view)];
  });
  return Array.from({ length: height + FRAME_LINES }, (_, row) => {
    const cells = blocks.map((block) => painted(block[row] ?? empty, width, paint));
    return cells.join(` ${paint('dim', BAR)} `).trimEnd();
  });
}

function columnWidth(models: number, columns: number): number {
  return Math.floor((columns - BAR_COLUMNS * (models - 1)) / models);
}

function headCells(view: ModelView, frame: number): Cell[] {
  const { text, style } = markOfBoard(view, frame);
  return [
    { text: `${text} ${nameOnBoard(view)}`, style },
    { text: doingOf(view), style: 'dim' },
  ];
}

function footCells(view: ModelView): Cell[] {
  const figures = [spendingOf(view), [duration(view.latencyMs), ...deedsOf(view)]];
  return figures.map((facts) => ({ text: facts.join(' · '), style: 'dim' }));
}

/** The end of an answer, and below it the error, if there is one. */
function answerCells({ text, error }: ModelView, width: number, most: number): Cell[] {
  const lines = firstLines(error ?? '', width, Math.min(4, most));
  const why: Cell[] = lines.map((line) => ({ text: line, style: 'red' }));
  const answer = lastLines(text, width, most - why.length).map((line) => ({ text: line }));
  return [...answer, ...why];
}

/** The padding is not coloured, so that the end of a line can be cut off. */
function painted({ text, style }: Cell, width: number, paint: Paint): string {
  const line = cutToWidth(text, width);
  const padding = ' '.repeat(width - displayWidth(line));
  return (style === undefined || line === '' ? line : paint(style, line)) + padding;
}
