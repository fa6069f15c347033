import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BoardState, ModelView } from '../../../src/cli/ask/board-state.ts';
import { renderBoard } from '../../../src/cli/ask/live-board.ts';
import { displayWidth } from '../../../src/cli/ui/terminal-text.ts';
import { anyCodeUnits } from './board-texts.ts';
import { boardOf, three, viewOf } from './board-views.ts';

/** As it is seen: one line per element, so that what stands at the margins is seen too. */
const shown = (state: BoardState, columns: number, rows: number) =>
  `\n${renderBoard(state, { columns, rows }).join('\n')}\n`;
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`).join('\n');

describe('the board of several models (fan-out 8)', () => {
  test('shows the answers side by side, each above what it has spent, on a wide terminal (fan-out 8)', () => {
    expect(shown(boardOf(three), 120, 24)).toMatchInlineSnapshot(`
      "
      Why is it slow?                                                                                                   12.3 s

      ⠋ sonnet                               │ ✓ gpt                                  │ ✗ qwen
      read_file src/fetch.ts                 │ answered                               │ failed
                                             │                                        │
      It waits for each file before it asks  │                                        │
      for the next one.                      │                                        │
                                             │                                        │
          for (const file of files) await    │                                        │ connect ECONNREFUSED 127.0.0.1:11434:
      read(file);                            │ Ask for all files at once.             │ is the server running?
                                             │                                        │
      2 steps · 812 tokens · $0.0031         │ 1 step · 1,204 tokens                  │ 0 steps · 0 tokens
      4.2 s · 1 write proposed · read_file … │ 8.7 s                                  │ 0.0 s
      "
    `);
  });

  test('shows a line for each model and the answer of the one in front on a narrow terminal (fan-out 8)', () => {
    expect(shown(boardOf(three), 80, 24)).toMatchInlineSnapshot(`
      "
      Why is it slow?                                                           12.3 s

      ⠋ sonnet  calling tools    812 tokens  4.2 s  $0.0031
      ✓ gpt     answered       1,204 tokens  8.7 s
      ✗ qwen    failed             0 tokens  0.0 s

      [sonnet] gpt  qwen

      It waits for each file before it asks for the next one.

          for (const file of files) await read(file);
      read_file src/fetch.ts · 1 write proposed · read_file ×2, grep
      "
    `);
    expect(shown(boardOf(three, { focus: 2 }), 80, 24)).toMatchInlineSnapshot(`
      "
      Why is it slow?                                                           12.3 s

      ⠋ sonnet  calling tools    812 tokens  4.2 s  $0.0031
      ✓ gpt     answered       1,204 tokens  8.7 s
      ✗ qwen    failed             0 tokens  0.0 s

       sonnet  gpt [qwen]

      connect ECONNREFUSED 127.0.0.1:11434: is the server running?
      "
    `);
  });

  test('has columns from 100 characters on, as long as each is 32 wide and they are high enough', () => {
    const hasColumns = (models: number, columns: number, rows: number) => {
      const views = Array.from({ length: models }, (_, index) => viewOf(`m${index}`, { text: 'answer' }));
      return shown(boardOf(views), columns, rows).includes('answer                ');
    };
    expect([hasColumns(2, 100, 24), hasColumns(2, 99, 24)]).toEqual([true, false]);
    expect([hasColumns(3, 102, 24), hasColumns(3, 101, 24)]).toEqual([true, false]);
    expect([hasColumns(5, 172, 24), hasColumns(5, 171, 24)]).toEqual([true, false]);
    expect([hasColumns(2, 160, 12), hasColumns(2, 160, 10)]).toEqual([true, false]);
  });

  test('keeps to the end of an answer that is longer than the screen, in columns and in tabs', () => {
    const models = [viewOf('long', { text: numbered(1_000) }), viewOf('short', { text: 'the only line' })];
    for (const columns of [120, 80]) {
      const screen = shown(boardOf(models), columns, 24);
      expect(screen).toContain('line 1000');
      expect(screen).toContain('line 990');
      expect(screen).not.toContain('line 980');
    }
    const rows = renderBoard(boardOf(models), { columns: 120, rows: 24 });
    expect(rows.find((row) => row.includes('the only line'))).toContain('line 1000');
  });

  test('is no higher than what there is to show', () => {
    const models = [viewOf('a', { text: 'one' }), viewOf('b', { text: 'one\ntwo' })];
    expect(renderBoard(boardOf(models), { columns: 160, rows: 200 })).toHaveLength(10);
  });

  test('wraps words, keeps the indentation of code, and breaks what is too long for a line', () => {
    const text = `The quick brown fox jumps over the lazy dog.\n  indented\n${'x'.repeat(50)}`;
    const rows = renderBoard(boardOf([viewOf('a', { text })]), { columns: 40, rows: 24 });
    const [first, second, ...rest] = rows.slice(-5);
    expect([first, second]).toEqual(['The quick brown fox jumps over the lazy', 'dog.']);
    expect(rest).toEqual(['  indented', 'x'.repeat(40), 'x'.repeat(10)]);
  });

  test('keeps its columns below each other in any script, and cuts no character in two', () => {
    const texts = [
      '漢字かな交じり文'.repeat(12),
      'e\u0301te\u0301 '.repeat(30),
      '👩‍👩‍👧‍👦👍🏽🇫🇷 '.repeat(20),
      '한국어 문장 '.repeat(20),
    ];
    const rows = renderBoard(boardOf(texts.map((text, index) => viewOf(`模型${index}`, { text }))), {
      columns: 160,
      rows: 24,
    });
    const bars = rows
      .slice(2)
      .map((row) => [...row.matchAll(/│/g)].map(({ index }) => displayWidth(row.slice(0, index))));
    expect(new Set(bars.map(String))).toEqual(new Set(['38,78,118']));
    expect(rows.join('').isWellFormed()).toBe(true);
  });

  test('lets nothing through that steers the terminal, from wherever it comes (fan-out 8)', () => {
    const nasty = 'a\u001b[2J\u001b]0;title\u0007\u009b31m\r\u0008\u202eb\u0000\tc\u2028d';
    const view = viewOf(nasty, { activity: nasty, text: nasty, error: nasty, toolCalls: { [nasty]: 2 } });
    for (const columns of [120, 60]) {
      const lines = renderBoard(boardOf([view, view], { prompt: nasty }), { columns, rows: 24 });
      expect(lines.join('')).not.toMatch(/[\p{Cc}\p{Cf}\u2028]/u);
    }
  });

  test('always names the model in front among the tabs, and the number of a focus that is out of range is no matter', () => {
    const models = Array.from({ length: 30 }, (_, index) => viewOf(`model-${index}`, { text: `answer ${index}` }));
    for (const [focus, index] of [
      [0, 0],
      [17, 17],
      [29, 29],
      [-4, 0],
      [99, 29],
      [Number.NaN, 0],
    ] as const) {
      const screen = shown(boardOf(models, { focus }), 80, 24);
      expect(screen).toContain(`[model-${index}]`);
      expect(screen).toContain(`answer ${index}\n`);
      expect(screen).toContain(`⠋ model-${index} `);
    }
  });

  test('paints around its texts, never into their width: without the colours it is the same', () => {
    const size = { columns: 120, rows: 24 };
    const marked = renderBoard(boardOf(three), size, (_, text) => `‹${text}›`);
    expect(marked.map((line) => line.replace(/[‹›]/g, '').trimEnd())).toEqual(renderBoard(boardOf(three), size));
    expect(marked.join('\n')).toContain('‹✓ gpt›');
  });

  test('does not take longer for an answer of ten megabytes than for a page', () => {
    const text = `${'word '.repeat(20)}\n`.repeat(100_000);
    const begun = performance.now();
    for (let frame = 0; frame < 20; frame++) shown(boardOf([viewOf('a', { text }), viewOf('b', { text })]), 160, 50);
    // It takes a tenth of a second; if each frame laid out all of the text, minutes.
    expect(performance.now() - begun).toBeLessThan(20_000);
  });

  test('leaves the lines of a growing answer where they are while it grows within one paragraph', () => {
    const words = Array.from({ length: 3_000 }, (_, index) => `word${index}`);
    const linesAt = (count: number) =>
      renderBoard(boardOf([viewOf('a', { text: words.slice(0, count).join(' ') })]), { columns: 60, rows: 24 });
    let moved = 0;
    for (let count = 2_000; count < 2_200; count++) {
      const [, ...before] = linesAt(count).slice(6);
      const after = linesAt(count + 1);
      if (!before.slice(0, -1).every((line) => after.includes(line))) moved += 1;
    }
    expect(moved).toBeLessThanOrEqual(1);
  });
});

const anyText = fc.oneof(
  anyCodeUnits,
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.lorem({ maxCount: 80 }),
  fc.constantFrom('\u001b[31mred\u001b[0m', '👩‍🚀'.repeat(40), '漢'.repeat(200), '\ud800', '\n'.repeat(50), '\t\t\tx'),
);
const anyNumber = fc.oneof(fc.nat({ max: 100_000 }), fc.constantFrom(0, 0.0001, 1e12));
const anyView: fc.Arbitrary<ModelView> = fc.record(
  {
    id: anyText,
    state: fc.constantFrom('waiting', 'thinking', 'calling-tools', 'leaving', 'answered', 'failed', 'interrupted'),
    activity: anyText,
    text: anyText,
    steps: fc.nat(),
    inputTokens: fc.nat(),
    outputTokens: fc.nat(),
    costUsd: anyNumber,
    latencyMs: anyNumber,
    toolCalls: fc.dictionary(anyText, fc.nat(), { maxKeys: 4 }),
    writes: fc.nat(),
    error: anyText,
  },
  {
    requiredKeys: [
      'id',
      'state',
      'text',
      'steps',
      'inputTokens',
      'outputTokens',
      'costUsd',
      'latencyMs',
      'toolCalls',
      'writes',
    ],
  },
);
const anyState: fc.Arbitrary<BoardState> = fc.record({
  prompt: anyText,
  models: fc.array(anyView, { maxLength: 12 }),
  elapsedMs: anyNumber,
  frame: fc.nat(),
  focus: fc.integer(),
});

const isTorture = process.env.PAWL_TORTURE === '1';

describe('with any text of the models, and any size of the terminal', () => {
  test('no line of the board is wider than the terminal, none steers it, and all of them fit (fan-out 8)', {
    timeout: isTorture ? 300_000 : 20_000,
  }, () => {
    const property = fc.property(
      anyState,
      fc.integer({ min: 1, max: 220 }),
      fc.integer({ min: 1, max: 60 }),
      (state, columns, rows) => {
        const lines = renderBoard(state, { columns, rows });
        expect(lines.length).toBeLessThanOrEqual(rows - 1);
        for (const line of lines) {
          expect(displayWidth(line)).toBeLessThanOrEqual(columns);
          expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/u);
        }
      },
    );
    fc.assert(property, { numRuns: isTorture ? 10_000 : 300 });
  });
});
