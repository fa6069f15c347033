import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';
import { hasTerminal, TerminalSession, type TerminalSettings } from '../terminal.ts';

const program = fileURLToPath(new URL('board-program.ts', import.meta.url));
const play = (settings: TerminalSettings, ...args: string[]) =>
  new TerminalSession([process.execPath, program, ...args], settings);

/** The spinner turns by the clock of the machine: which picture of it is seen is no matter. */
const seen = (lines: readonly string[]) => `\n${lines.join('\n').replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, '⠿')}\n`;
const times = (lines: readonly string[], what: string) => lines.filter((line) => line.includes(what)).length;
const CTRL_C = '\u0003';

describe.skipIf(!hasTerminal)('the board on a terminal (fan-out 8)', { concurrent: true, timeout: 180_000 }, () => {
  test('on 80 × 24 a person sees a line per model, the answer in front, and at the end how each of them ended (fan-out 8)', async ({
    expect,
  }) => {
    const session = play({ columns: 80, rows: 24 });
    expect(seen(await session.shows('waiting'))).toMatchInlineSnapshot(`
      "
      Why is it slow?                                                            0.0 s

      · sonnet  waiting        0 tokens  0.0 s
      · gpt     waiting        0 tokens  0.0 s
      · 模型    waiting        0 tokens  0.0 s

      [sonnet] gpt  模型
      "
    `);
    session.send('nn');
    expect(seen(await session.shows('read_file'))).toMatchInlineSnapshot(`
      "
      Why is it slow?                                                            3.0 s

      ⠿ sonnet  calling tools  600 tokens  1.5 s
      ⠿ gpt     thinking       240 tokens  0.0 s
      ⠿ 模型    thinking        40 tokens  0.0 s

      [sonnet] gpt  模型

      Let me see.
      read_file src/fetch.ts
      "
    `);
    session.send('f');
    expect(seen(await session.shows('[gpt]'))).toMatchInlineSnapshot(`
      "
      Why is it slow?                                                            3.0 s

      ⠿ sonnet  calling tools  600 tokens  1.5 s
      ⠿ gpt     thinking       240 tokens  0.0 s
      ⠿ 模型    thinking        40 tokens  0.0 s

       sonnet [gpt] 模型

      sentence 48
      sentence 49
      sentence 50
      sentence 51
      sentence 52
      sentence 53
      sentence 54
      sentence 55
      sentence 56
      sentence 57
      sentence 58
      sentence 59
      sentence 60
      "
    `);
    session.send('n');
    await session.shows('failed');
    session.send('e');
    expect(await session.ended).toEqual({ code: 0, signal: null });
    const left = await session.history();
    expect(seen(left.slice(0, 7))).toMatchInlineSnapshot(`
      "
      ✓ sonnet: answered · 2 steps · 690 tokens · $0.0031 · 3.0 s · 1 write proposed ·
       read_file
      ✗ gpt: failed: the connection was lost · 0 steps · 240 tokens · 2.0 s
      ■ 模型: interrupted · 0 steps · 40 tokens · 3.0 s
      ## sonnet

      Ask for all at once.
      "
    `);
    expect([times(left, 'Why is it slow?'), times(left, '[gpt]'), session.isCursorHidden]).toEqual([0, 0, false]);
  });

  test('on 160 × 40 a person sees the answers side by side, in columns that wide characters do not shift (fan-out 8)', async ({
    expect,
  }) => {
    const session = play({ columns: 160, rows: 40 });
    await session.shows('waiting');
    session.send('nn');
    expect(seen((await session.shows('read_file')).slice(0, 6))).toMatchInlineSnapshot(`
      "
      Why is it slow?                                                                                                                                            3.0 s

      ⠿ sonnet                                            │ ⠿ gpt                                               │ ⠿ 模型
      read_file src/fetch.ts                              │ thinking                                            │ thinking
                                                          │                                                     │
                                                          │ sentence 32                                         │
      "
    `);
    expect(seen((await session.screen()).slice(-8))).toMatchInlineSnapshot(`
      "
                                                          │ sentence 56                                         │ 而不是同时请求。é它逐个等待文件，👍
                                                          │ sentence 57                                         │ 而不是同时请求。é它逐个等待文件，👍
                                                          │ sentence 58                                         │ 而不是同时请求。é它逐个等待文件，👍
                                                          │ sentence 59                                         │ 而不是同时请求。é它逐个等待文件，👍
      Let me see.                                         │ sentence 60                                         │ 而不是同时请求。é
                                                          │                                                     │
      1 step · 600 tokens                                 │ 0 steps · 240 tokens                                │ 0 steps · 40 tokens
      1.5 s                                               │ 0.0 s                                               │ 0.0 s
      "
    `);
    session.send('n');
    expect(seen((await session.shows('lost')).slice(-8))).toMatchInlineSnapshot(`
      "
                                                          │ sentence 57                                         │ 而不是同时请求。é它逐个等待文件，👍
                                                          │ sentence 58                                         │ 而不是同时请求。é它逐个等待文件，👍
                                                          │ sentence 59                                         │ 而不是同时请求。é它逐个等待文件，👍
                                                          │ sentence 60                                         │ 而不是同时请求。é它逐个等待文件，👍
      Ask for all at once.                                │ the connection was lost                             │ 而不是同时请求。é
                                                          │                                                     │
      2 steps · 690 tokens · $0.0031                      │ 0 steps · 240 tokens                                │ 0 steps · 40 tokens
      3.0 s · 1 write proposed · read_file                │ 2.0 s                                               │ 3.0 s
      "
    `);
  });

  test('a window that changes its size shows the board as it fits, and nothing else', async ({ expect }) => {
    const session = play({ columns: 160, rows: 40 });
    await session.shows('waiting');
    session.send('nn');
    await session.shows('read_file');
    for (const [columns, rows, sign] of [
      [80, 24, '[sonnet]'],
      [120, 30, '│'],
      [50, 12, '[sonnet]'],
      [200, 50, '│'],
    ] as const) {
      session.resize(columns, rows);
      const lines = await session.shows(sign);
      expect([times(lines, 'Why is it slow?'), times(lines, '模型'), lines.length < rows]).toEqual([
        1,
        sign === '│' ? 1 : 2,
        true,
      ]);
    }
  });

  test('a window that becomes narrower keeps what stood above the board, and no line of the board that it has wrapped', async ({
    expect,
  }) => {
    const session = play({ columns: 80, rows: 24 });
    await session.shows('waiting');
    session.send('sns');
    await session.shows('Let me see.');
    session.resize(50, 24);
    expect(seen(await session.shows(/\? {30}1\.5 s$/m))).toMatchInlineSnapshot(`
      "
      pawl: warning 0: said while the board is up
      pawl: warning 1: said while the board is up
      Why is it slow?                              1.5 s

      ⠿ sonnet  thinking       0 tokens  0.0 s
      ⠿ gpt     thinking       0 tokens  0.0 s
      ⠿ 模型    thinking       0 tokens  0.0 s

      [sonnet] gpt  模型

      Let me see.
      "
    `);
  });

  test('a terminal that takes signs for wider than they are here cuts lines off, and still shows one board', async ({
    expect,
  }) => {
    const widthOf = (codePoint: number) => (codePoint < 0x80 ? 1 : 2);
    const session = play({ columns: 80, rows: 24, widthOf, env: { PROMPT: 'Why is it slow – and since when?' } });
    await session.shows('waiting');
    session.send('nn');
    await session.shows('read_file');
    session.send('n');
    await session.shows('answered');
    const lines = await session.history();
    expect([times(lines, 'Why is it slow –'), times(lines, 'answered')]).toEqual([1, 1]);
  });

  test('a board that becomes lower leaves nothing of what it was', async ({ expect }) => {
    const session = play({ columns: 80, rows: 24 });
    await session.shows('waiting');
    session.send('nnf');
    await session.shows('sentence 60');
    session.send('ff');
    const lines = await session.shows('[sonnet]');
    expect(lines.slice(-2)).toEqual(['Let me see.', 'read_file src/fetch.ts']);
  });

  test('what is said while the board is up stands above it, whole and once', async ({ expect }) => {
    const session = play({ columns: 80, rows: 24 });
    await session.shows('waiting');
    session.send('ns');
    await session.shows('warning 1');
    session.send('ns');
    const lines = await session.shows(/warning 2.*read_file/s);
    expect(lines.slice(0, 3)).toEqual([
      'pawl: warning 1: said while the board is up',
      'pawl: warning 2: said while the board is up',
      expect.stringMatching(/^Why is it slow\? +3\.0 s$/),
    ]);
    expect(times(await session.history(), 'warning')).toBe(2);
  });

  test('Ctrl-C without a handler ends the process by its signal, and the cursor is there again', async ({ expect }) => {
    const session = play({ columns: 80, rows: 24 }, 'deaf');
    await session.shows('thinking');
    expect(session.isCursorHidden).toBe(true);
    session.send(CTRL_C);
    expect(await session.ended).toEqual({ code: null, signal: 2 });
    await session.screen();
    expect(session.isCursorHidden).toBe(false);
  });

  test('a signal without any other listener leaves the terminal as it was before the keys were followed', async ({
    expect,
  }) => {
    const command = ['sh', '-c', `"$0" "$1"; stty -a`, process.execPath, program];
    const session = new TerminalSession(command, { columns: 80, rows: 24 });
    await session.shows('waiting');
    session.send('h');
    await session.ended;
    const left = (await session.history()).join('\n');
    expect(left).toMatch(/ icanon/);
    expect(left).toMatch(/ isig|^isig/m);
    expect(session.isCursorHidden).toBe(false);
  });

  test('an exit in the middle leaves the cursor visible', async ({ expect }) => {
    const session = play({ columns: 80, rows: 24 });
    await session.shows('waiting');
    session.send('x');
    expect(await session.ended).toEqual({ code: 3, signal: null });
    await session.screen();
    expect(session.isCursorHidden).toBe(false);
  });

  test('a frame appears at once, ten times a second at most, in colours unless NO_COLOR is set', async ({ expect }) => {
    const [coloured, plain] = [{}, { NO_COLOR: '1' }].map((env) => play({ env })) as [TerminalSession, TerminalSession];
    for (const session of [coloured, plain]) {
      await session.shows('waiting');
      for (const key of 'nnfff') session.send(key);
      await session.shows('read_file');
      await session.shows('3.0 s');
      session.send('x');
      await session.ended;
    }
    const frames = coloured.written.split('\u001b[?2026h').length - 1;
    expect(coloured.written.split('\u001b[?2026l')).toHaveLength(frames + 1);
    expect(frames).toBeLessThanOrEqual(2 + (coloured.chunks.at(-1)?.at ?? 0) / 100);
    expect(coloured.written).toContain('\u001b[36m');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
    expect(plain.written).not.toMatch(/\u001b\[\d+m/);
  });

  test('a terminal that can rewrite nothing gets plain lines (fan-out 8)', async ({ expect }) => {
    const session = play({ columns: 80, rows: 40, env: { TERM: 'dumb' } });
    await session.shows('ready');
    session.send('nnn');
    await session.shows('interrupted');
    session.send('e');
    await session.ended;
    expect((await session.history()).slice(0, 8)).toMatchInlineSnapshot(`
      [
        "ready",
        "sonnet: starts",
        "gpt: starts",
        "模型: starts",
        "sonnet: step 1; 600 tokens so far",
        "sonnet: answered, 2 steps, 690 tokens, $0.0031, 3.0 s, 1 write proposed, read_fi",
        "le",
        "gpt: failed: the connection was lost, 0 steps, 240 tokens, 2.0 s",
      ]
    `);
    expect(session.written).not.toContain('\u001b');
  });
});
