import { stripVTControlCharacters, styleText } from 'node:util';
import { hideCursor } from './hidden-cursor.ts';
import { withoutKeys } from './own-secrets.ts';
import { cutToWidth, displayWidth, harmless } from './terminal-text.ts';

export type Style = Parameters<typeof styleText>[0];

/** Everything in between appears at once: a terminal that knows this never shows half of it. */
const BEGIN = '\u001b[?2026h';
const END = '\u001b[?2026l';
/** Terminals do not agree on the width of every character: a line that is too long for one is cut, and never wrapped. */
const NO_WRAP = '\u001b[?7l';
const WRAP = '\u001b[?7h';
const ERASE_LINE = '\u001b[2K';
const ERASE_BELOW = '\u001b[J';

/** Where a command writes: results to stdout, everything else to stderr, with lines at its foot that are rewritten. */
export class Output {
  /** As they were drawn; the cursor stands behind the last of them. */
  #foot: readonly string[] = [];

  constructor() {
    for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreClosed);
  }

  /** Whether somebody watches stderr on a terminal that can rewrite a line. */
  get isLive(): boolean {
    return process.stderr.isTTY === true && process.env.TERM !== 'dumb';
  }

  /** Of the terminal, in characters. */
  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 };
  }

  /** Writes a result. */
  print(text: string): void {
    const shown = withoutKeys(text);
    const hasFoot = this.#foot.length > 0;
    if (hasFoot) process.stderr.write(this.#erased());
    process.stdout.write(`${process.stdout.isTTY ? harmless(shown) : shown}\n`);
    if (hasFoot) process.stderr.write(this.#drawn());
  }

  /** Tells the user something. */
  say(text: string): void {
    const line = `${withoutKeys(text)}\n`;
    process.stderr.write(this.#foot.length === 0 ? line : `${BEGIN}${this.#erased()}${line}${this.#drawn()}${END}`);
  }

  /**
   * Rewrites the lines at the foot; '' takes them away. Lines are cut to the width of the terminal. Of several lines the last
   * should be '': the cursor stands in it.
   */
  show(lines: string | readonly string[]): void {
    if (!this.isLive) return;
    const { columns } = this.size;
    const next = (typeof lines === 'string' ? [lines] : lines).map((line) => cutTo(withoutKeys(line), columns));
    const top = this.#top();
    const hadFoot = this.#foot.length > 0;
    this.#foot = next.some((line) => line !== '') ? next : [];
    if (this.#foot.length > 0) process.stderr.write(`${BEGIN}${this.#drawn(top)}${END}`);
    else if (hadFoot) process.stderr.write(`${top}${ERASE_LINE}${ERASE_BELOW}`);
  }

  /** Hides the cursor, until it is given back or the process ends. */
  hideCursor(): Disposable {
    return hideCursor(process.stderr);
  }

  /** Coloured where stderr is a terminal and NO_COLOR is not set. */
  paint(style: Style, text: string): string {
    return styleText(style, text, { stream: process.stderr });
  }

  /** Resolves when everything was handed to the system. */
  async flush(): Promise<void> {
    this.show('');
    const written = (stream: NodeJS.WriteStream) => new Promise<void>((resolve) => stream.write('', () => resolve()));
    await Promise.all([written(process.stdout), written(process.stderr)]);
  }

  /** From behind the foot to its beginning. A terminal that has become narrower has wrapped the lines it had. */
  #top(): string {
    const { columns } = this.size;
    const heights = this.#foot.map((line) => Math.max(1, Math.ceil(widthOf(line) / columns)));
    const up = heights.reduce((sum, height) => sum + height, 0) - 1;
    return up > 0 ? `\r\u001b[${up}A` : '\r';
  }

  #erased(): string {
    return `${this.#top()}${ERASE_LINE}${ERASE_BELOW}`;
  }

  /** Each line is erased before it is written, and what was below before the last: nothing is blank for longer than that. */
  #drawn(from = ''): string {
    const above = this.#foot.slice(0, -1).map((line) => `${ERASE_LINE}${line}\n`);
    return `${NO_WRAP}${from}${above.join('')}${ERASE_LINE}${ERASE_BELOW}${this.#foot.at(-1) ?? ''}${WRAP}`;
  }
}

/** Whoever read us has gone (`pawl list | head`): the work goes on, only nobody is told. */
function ignoreClosed(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE' || error.code === 'EIO') return;
  process.exitCode = 1;
}

/** Cuts a line to the width of the terminal: one that wraps could not be rewritten. Its colours cost no width. */
function cutTo(line: string, columns: number): string {
  return widthOf(line) <= columns ? line : cutToWidth(stripVTControlCharacters(line), columns);
}

function widthOf(line: string): number {
  return displayWidth(stripVTControlCharacters(line));
}
