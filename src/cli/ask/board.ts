import { duration } from '../ui/figures.ts';
import { cutToWidth, displayWidth, drawableLine } from '../ui/terminal-text.ts';
import { fitsColumns, renderColumns } from './board-columns.ts';
import type { Paint } from './board-facts.ts';
import type { BoardState, Size } from './board-state.ts';
import { renderTabs } from './board-tabs.ts';

const plain: Paint = (_, text) => text;

/**
 * Several models answering: side by side where each has room, otherwise a line for each and the answer of the one in front.
 * Nothing in it steers a terminal, except for what `paint` adds.
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

/** On a few lines the models count more than the question. */
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
