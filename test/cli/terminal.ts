import { type ChildProcessWithoutNullStreams, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import xterm from '@xterm/headless';
import { afterAll } from 'vitest';
import { binFolder } from './pawl.ts';
import { relay } from './terminal-relay.ts';

const runs = (command: string, ...args: string[]) => spawnSync(command, args, { timeout: 10_000 }).status === 0;
const kind = runs('python3', '-c', 'import pty, termios')
  ? 'python'
  : runs('script', '-qec', 'true', '/dev/null')
    ? 'script'
    : undefined;

/** False where neither Python nor util-linux `script` can open a pseudo-terminal: tests that need one are skipped then. */
export const hasTerminal = kind !== undefined;
if (!hasTerminal) console.warn('no python3 and no script(1): tests with a real terminal are skipped');

const opened = new Set<TerminalSession>();
afterAll(() => {
  for (const session of opened) session.close();
  opened.clear();
});

export interface TerminalSettings {
  readonly columns?: number;
  readonly rows?: number;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** How wide the terminal takes a character to be; default what most of them do. */
  readonly widthOf?: (codePoint: number) => 0 | 1 | 2;
}

/** How a command ended: with a code, or by the number of a signal. */
export interface TerminalEnd {
  readonly code: number | null;
  readonly signal: number | null;
}

/**
 * A command in a real pseudo-terminal, and a terminal emulator that shows what it writes.
 * @example
 * const session = new TerminalSession([process.execPath, bin, 'list'], { columns: 80, rows: 24 });
 * await session.shows('r1');
 * session.send('\u0003');
 * await session.ended;
 * expect(await session.screen()).toEqual(['RUN …']);
 */
export class TerminalSession {
  /** What was written, and when, in ms since the beginning. */
  readonly chunks: { readonly at: number; readonly bytes: Buffer }[] = [];
  readonly ended: Promise<TerminalEnd>;
  /** Whether the cursor is hidden just now. */
  isCursorHidden = false;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #terminal: InstanceType<typeof xterm.Terminal>;
  readonly #folder = mkdtempSync(join(tmpdir(), 'pawl-terminal-'));
  readonly #startedAt = performance.now();
  #heard = Promise.withResolvers<void>();
  #hasEnded = false;

  constructor(command: readonly string[], settings: TerminalSettings = {}) {
    const { columns = 80, rows = 24, cwd = this.#folder, env = {}, widthOf } = settings;
    this.#terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 1_000, allowProposedApi: true });
    if (widthOf) measureBy(this.#terminal, widthOf);
    for (const final of ['h', 'l']) {
      this.#terminal.parser.registerCsiHandler({ prefix: '?', final }, (modes) => {
        if (modes.includes(25)) this.isCursorHidden = final === 'l';
        return false;
      });
    }
    const [program = '', ...args] = this.#wrapped(command, columns, rows);
    this.#child = spawn(program, args, { cwd, env: { ...cleanEnvironment(), ...env } });
    this.#child.stdin.on('error', () => {});
    this.#child.stdout.on('data', (bytes: Buffer) => this.#hear(bytes));
    this.ended = this.#end();
    opened.add(this);
  }

  /** Types. @param keys as a terminal sends them: '\u0003' is Ctrl-C, '\u001b[C' the right arrow */
  send(keys: string): void {
    this.#child.stdin.write(kind === 'python' ? `${JSON.stringify({ keys })}\n` : keys);
  }

  /** Makes the window larger or smaller, as its user would. */
  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows);
    if (kind === 'python') this.#child.stdin.write(`${JSON.stringify({ size: [columns, rows] })}\n`);
    else
      execFileSync('stty', ['-F', readFileSync(this.#ttyFile, 'utf8').trim(), 'cols', `${columns}`, 'rows', `${rows}`]);
  }

  /** The lines of the window, without the free ones at its foot. */
  async screen(): Promise<string[]> {
    const { active } = await this.#settled();
    return this.#lines(active.baseY, active.length);
  }

  /** The window, and what has left it at the top. */
  async history(): Promise<string[]> {
    const { active } = await this.#settled();
    return this.#lines(0, active.length);
  }

  /** Waits until a text stands in the window. @throws with what stands there instead, at the end or after `withinMs` */
  async shows(what: string | RegExp, withinMs = 120_000): Promise<string[]> {
    const isLate = AbortSignal.timeout(withinMs);
    isLate.addEventListener('abort', () => this.#wake());
    for (;;) {
      const next = this.#heard.promise;
      const lines = await this.screen();
      const text = lines.join('\n');
      if (typeof what === 'string' ? text.includes(what) : what.test(text)) return lines;
      if (this.#hasEnded) throw new Error(`it ended without showing ${what}:\n${text}`);
      if (isLate.aborted) throw new Error(`it has not shown ${what} within ${withinMs} ms:\n${text}`);
      await next;
    }
  }

  /** Everything that was written. */
  get written(): string {
    return Buffer.concat(this.chunks.map(({ bytes }) => bytes)).toString();
  }

  close(): void {
    this.#child.kill('SIGKILL');
    this.#terminal.dispose();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #ttyFile(): string {
    return join(this.#folder, 'tty');
  }

  #wrapped(command: readonly string[], columns: number, rows: number): string[] {
    if (kind === 'python') return ['python3', '-c', relay, `${columns}`, `${rows}`, ...command];
    const quoted = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    const inside = `tty > '${this.#ttyFile}'; stty cols ${columns} rows ${rows}; exec ${quoted}`;
    return ['script', '-qec', inside, '/dev/null'];
  }

  #hear(bytes: Buffer): void {
    this.chunks.push({ at: performance.now() - this.#startedAt, bytes });
    this.#terminal.write(bytes);
    this.#wake();
  }

  #wake(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers();
  }

  async #end(): Promise<TerminalEnd> {
    let report = '';
    this.#child.stderr.on('data', (text) => {
      report += text;
    });
    const code = await new Promise<number | null>((resolve, reject) => {
      this.#child.on('error', reject);
      this.#child.on('close', resolve);
    });
    this.#hasEnded = true;
    this.#wake();
    // Nothing was reported when the session was closed from here.
    if (kind === 'python') return report === '' ? { code: null, signal: null } : JSON.parse(report);
    return code !== null && code > 128 && code - 128 in signalNumbers
      ? { code: null, signal: code - 128 }
      : { code, signal: null };
  }

  /** Waits until the emulator has read what was written, and all of a frame whose beginning it has. */
  async #settled() {
    for (;;) {
      const next = this.#heard.promise;
      await new Promise<void>((resolve) => this.#terminal.write('', resolve));
      if (!this.#terminal.modes.synchronizedOutputMode || this.#hasEnded) return this.#terminal.buffer;
      await next;
    }
  }

  #lines(from: number, to: number): string[] {
    const { active } = this.#terminal.buffer;
    const lines = Array.from(
      { length: to - from },
      (_, row) => active.getLine(from + row)?.translateToString(true) ?? '',
    );
    while (lines.at(-1) === '') lines.pop();
    return lines;
  }
}

function measureBy({ unicode }: InstanceType<typeof xterm.Terminal>, wcwidth: (codePoint: number) => 0 | 1 | 2): void {
  const charProperties = (codePoint: number, before: number) => {
    const width = wcwidth(codePoint);
    const joins = width === 0 && before !== 0;
    // As the emulator has them: bit 0 = belongs to the character before, bits 1 and 2 = the width.
    return joins ? (before & 6) | 1 : width << 1;
  };
  unicode.register({ version: 'ours', wcwidth, charProperties });
  unicode.activeVersion = 'ours';
}

const signalNumbers = Object.fromEntries(Object.entries(constants.signals).map(([name, number]) => [number, name]));

function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = ['HOME', 'TMPDIR', 'PYENV_VERSION'].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  );
  return {
    ...Object.fromEntries(kept),
    PATH: `${binFolder()}${delimiter}${process.env.PATH}`,
    TERM: 'xterm-256color',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    PAWL_STATE_HOME: join(tmpdir(), 'pawl-test-state'),
  };
}
