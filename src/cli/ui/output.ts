import { randomUUID } from 'node:crypto';
import { stripVTControlCharacters, styleText } from 'node:util';
import { escaped } from '../../values/texts/escaped-json.ts';
import { harmless } from './control-characters.ts';
import { withoutKeys } from './own-secrets.ts';
import { cutToWidth, displayWidth } from './terminal-text.ts';

export type Style = Parameters<typeof styleText>[0];

/** Synchronized output: a terminal that supports it shows everything in between at once. */
const BEGIN = '\u001b[?2026h';
const END = '\u001b[?2026l';
/** Terminals differ in the width of some characters: a line that is too long is cut, never wrapped. */
const NO_WRAP = '\u001b[?7l';
const WRAP = '\u001b[?7h';
const ERASE_LINE = '\u001b[2K';
const ERASE_BELOW = '\u001b[J';

/** Writes results to stdout, and everything else to stderr, above the lines at the bottom that are rewritten. */
export class Output {
  /** The lines as drawn; the cursor is at the end of the last one. */
  #foot: readonly string[] = [];
  /** Replaces ESC in our own sequences until the text around them is filtered. */
  readonly #ours = `\ufdd0${randomUUID()}\ufdd1`;

  constructor() {
    for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreClosed);
  }

  /** Whether stderr is a terminal that can rewrite a line. */
  get isLive(): boolean {
    return process.stderr.isTTY === true && process.env.TERM !== 'dumb';
  }

  /** The size of the terminal, in characters. */
  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 };
  }

  /** Writes a line of a result. */
  print(line: string): void {
    this.#print(asLine(line));
  }

  /** Writes the text of a model or a tool, with its line breaks. `--json` writes it unchanged. */
  printText(text: string): void {
    this.#print(harmless(withoutKeys(text)));
  }

  /** Writes a result for machines. @param indent spaces */
  printJson(value: unknown, indent?: number): void {
    this.#print(escaped(withoutKeys(JSON.stringify(value, null, indent))));
  }

  /** Writes a line of JSON that must not change: its control characters are escaped, and it has no secrets. */
  printFiled(line: string): void {
    this.#print(line);
  }

  /** Writes one line to the user. */
  say(line: string): void {
    this.#say(asLine(line));
  }

  /** The same, with our own line breaks. */
  sayText(text: string): void {
    this.#say(harmless(withoutKeys(text)));
  }

  /** Names the page that explains an error to a person at a terminal. A script reads one line for an error. */
  see(page: string | undefined): void {
    if (page !== undefined && process.stderr.isTTY) this.say(`See ${page}`);
  }

  #print(shown: string): void {
    const hasFoot = this.#foot.length > 0;
    if (hasFoot) process.stderr.write(this.#erased());
    process.stdout.write(`${this.#painted(shown)}\n`);
    if (hasFoot) process.stderr.write(this.#drawn());
  }

  #say(shown: string): void {
    const line = `${this.#painted(shown)}\n`;
    process.stderr.write(this.#foot.length === 0 ? line : `${BEGIN}${this.#erased()}${line}${this.#drawn()}${END}`);
  }

  /**
   * Rewrites the lines at the bottom; '' removes them. Lines are cut to the width of the terminal. If there are several, the
   * last one should be '': the cursor is in it.
   */
  show(lines: string | readonly string[]): void {
    if (!this.isLive) return;
    const { columns } = this.size;
    const next = (typeof lines === 'string' ? [lines] : lines).map((line) =>
      cutTo(this.#painted(asFootLine(line)), columns),
    );
    const top = this.#top();
    const hadFoot = this.#foot.length > 0;
    this.#foot = next.some((line) => line !== '') ? next : [];
    if (this.#foot.length > 0) process.stderr.write(`${BEGIN}${this.#drawn(top)}${END}`);
    else if (hadFoot) process.stderr.write(`${top}${ERASE_LINE}${ERASE_BELOW}`);
  }

  /** Hides the cursor until it is disposed of, or the process ends. */
  hideCursor(): Disposable {
    return hideCursor(process.stderr);
  }

  /** Adds colours if stderr is a terminal and NO_COLOR is not set. Only this object can print them. */
  paint(style: Style, text: string): string {
    return this.#marked(style, text, process.stderr);
  }

  /** The same for stdout. */
  paintResult(style: Style, text: string): string {
    return this.#marked(style, text, process.stdout);
  }

  /**
   * The filter removes all sequences from a text. Our own sequences are marks that no other text can contain; the filter's
   * output gets them back.
   */
  #marked(style: Style, text: string, stream: NodeJS.WriteStream): string {
    const [open = '', close = ''] = styleText(style, '\u0000', { stream }).split('\u0000');
    return this.#mark(open) + text + this.#mark(close);
  }

  #mark(sequence: string): string {
    return sequence.replaceAll('\u001b', this.#ours);
  }

  #painted(text: string): string {
    return text.replaceAll(this.#ours, '\u001b');
  }

  /** Resolves when all output was written. */
  async flush(): Promise<void> {
    this.show('');
    const written = (stream: NodeJS.WriteStream) => new Promise<void>((resolve) => stream.write('', () => resolve()));
    await Promise.all([written(process.stdout), written(process.stderr)]);
  }

  /** Moves the cursor to the first line at the bottom. A terminal that became narrower has wrapped the lines. */
  #top(): string {
    const { columns } = this.size;
    const heights = this.#foot.map((line) => Math.max(1, Math.ceil(widthOf(line) / columns)));
    const up = heights.reduce((sum, height) => sum + height, 0) - 1;
    return up > 0 ? `\r\u001b[${up}A` : '\r';
  }

  #erased(): string {
    return `${this.#top()}${ERASE_LINE}${ERASE_BELOW}`;
  }

  /** Each line is erased just before it is written, and the rest before the last line: so nothing flickers. */
  #drawn(from = ''): string {
    const above = this.#foot.slice(0, -1).map((line) => `${ERASE_LINE}${line}\n`);
    return `${NO_WRAP}${from}${above.join('')}${ERASE_LINE}${ERASE_BELOW}${this.#foot.at(-1) ?? ''}${WRAP}`;
  }
}

function asLine(text: string): string {
  return harmless(withoutKeys(text)).replaceAll('\n', ' ').trimEnd();
}

function asFootLine(text: string): string {
  return harmless(withoutKeys(text)).replaceAll('\n', ' ');
}

/** If the reader has closed the pipe (`pawl list | head`), the work continues without output. */
function ignoreClosed(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE' || error.code === 'EIO') return;
  process.exitCode = 1;
}

/** Cuts a line to the width of the terminal: a wrapped line could not be rewritten. Colours have no width. */
function cutTo(line: string, columns: number): string {
  return widthOf(line) <= columns ? line : cutToWidth(stripVTControlCharacters(line), columns);
}

function widthOf(line: string): number {
  return displayWidth(stripVTControlCharacters(line));
}

const HIDE = '\u001b[?25l';
const SHOW = '\u001b[?25h';
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * Hides the cursor of a terminal until it is disposed of, or the process ends. A signal without another listener ends the
 * process as usual.
 */
function hideCursor(terminal: NodeJS.WritableStream): Disposable {
  const giveBack = () => {
    process.off('exit', giveBack);
    for (const signal of signals) process.off(signal, onSignal);
    terminal.write(SHOW);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    if (process.listenerCount(signal) > 1) return;
    giveBack();
    // Node does this at an exit, but not after a signal that has a listener.
    if (process.stdin.isRaw) process.stdin.setRawMode(false);
    process.kill(process.pid, signal);
  };
  process.on('exit', giveBack);
  for (const signal of signals) process.on(signal, onSignal);
  terminal.write(HIDE);
  return { [Symbol.dispose]: giveBack };
}
