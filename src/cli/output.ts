import { stripVTControlCharacters, styleText } from 'node:util';
import { harmless } from './terminal-text.ts';

export type Style = Parameters<typeof styleText>[0];

/** Where a command writes: results to stdout, everything else to stderr, with one line at its foot that is rewritten. */
export class Output {
  #line = '';

  constructor() {
    for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreClosed);
  }

  /** Whether somebody watches stderr on a terminal that can rewrite a line. */
  get isLive(): boolean {
    return process.stderr.isTTY === true && process.env.TERM !== 'dumb';
  }

  /** Writes a result. */
  print(text: string): void {
    this.#clear();
    const shown = withoutKeys(text);
    process.stdout.write(`${process.stdout.isTTY ? harmless(shown) : shown}\n`);
    this.#draw();
  }

  /** Tells the user something. */
  say(text: string): void {
    this.#clear();
    process.stderr.write(`${withoutKeys(text)}\n`);
    this.#draw();
  }

  /** Rewrites the line at the foot; '' takes it away. */
  show(line: string): void {
    if (!this.isLive) return;
    this.#clear();
    this.#line = cutTo(line, process.stderr.columns || 80);
    this.#draw();
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

  #clear(): void {
    if (this.#line !== '') process.stderr.write('\r\u001b[2K');
  }

  #draw(): void {
    if (this.#line !== '') process.stderr.write(this.#line);
  }
}

/** Whoever read us has gone (`pawl list | head`): the work goes on, only nobody is told. */
function ignoreClosed(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE' || error.code === 'EIO') return;
  process.exitCode = 1;
}

/** Cuts a line to the width of the terminal: one that wraps could not be rewritten. Its colours cost no width. */
function cutTo(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line);
  return plain.length < columns ? line : `${plain.slice(0, Math.max(0, columns - 2))}…`;
}

/** Providers' errors may quote a request. What stands in our environment as an API key is never printed. */
function withoutKeys(text: string): string {
  const keys = Object.entries(process.env).filter(([name]) => name.endsWith('_API_KEY'));
  return keys.reduce((clean, [name, key = '']) => (key.length < 16 ? clean : clean.replaceAll(key, name)), text);
}
