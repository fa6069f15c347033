import { testClock } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type BoardOutput, LiveBoard } from '../../../src/cli/ask/live-board.ts';
import { viewOf } from './board-views.ts';

/** A terminal that keeps what it was shown. */
function fakeTerminal(size = { columns: 120, rows: 24 }) {
  const frames: string[] = [];
  const said: string[] = [];
  const cursor = { isHidden: false };
  const output: BoardOutput & { size: typeof size } = {
    size,
    show: (lines) => void frames.push(typeof lines === 'string' ? lines : lines.join('\n')),
    say: (text) => void said.push(text),
    paint: (_, text) => text,
    hideCursor: () => {
      cursor.isHidden = true;
      const returnRun = () => {
        cursor.isHidden = false;
      };
      return { [Symbol.dispose]: returnRun };
    },
  };
  return { output, frames, said, cursor };
}

function board(models: readonly string[] = ['a', 'b']) {
  const clock = testClock();
  const terminal = fakeTerminal();
  const live = new LiveBoard(terminal.output, { prompt: 'Why?', models, clock });
  return { ...terminal, clock, live };
}

describe('the live board', () => {
  test('shows every model before anything is known of it', () => {
    const { frames, cursor } = board();
    expect(frames).toHaveLength(1);
    expect(frames[0]).toMatch(/^· a +│ · b\nwaiting +│ waiting$/m);
    expect(cursor.isHidden).toBe(true);
  });

  test('draws ten times a second however often a model is heard of, and then what is newest', async () => {
    const { live, clock, frames } = board();
    for (let ms = 0; ms < 1_000; ms++) {
      live.update(viewOf('a', { text: `word ${ms}` }));
      await clock.advance(1);
    }
    expect(frames).toHaveLength(11);
    expect(frames.at(-1)).toContain('word 999');
  });

  test('draws the next frame for the size that the terminal has by then', async () => {
    const { output, clock, frames } = board();
    expect(frames.at(-1)).toContain('│');
    output.size.columns = 60;
    await clock.advance(100);
    expect(frames.at(-1)).toContain('[a]');
    expect(frames.at(-1)).not.toContain('│');
  });

  test('lets the time of a model that is at work continue between two updates, and of no other', async () => {
    const { live, clock, frames } = board(['a', 'b', 'c']);
    live.update(viewOf('a', { latencyMs: 5_000 }));
    live.update(viewOf('b', { state: 'answered', latencyMs: 5_000 }));
    await clock.advance(2_000);
    expect(frames.at(-1)).toMatch(/^7\.0 s +│ 5\.0 s +│ 0\.0 s$/m);
  });

  test('puts the next model in front, and after the last one the first', async () => {
    const { live, clock, frames, output } = board(['a', 'b', 'c']);
    output.size.columns = 60;
    const inFront = async (by: number) => {
      live.moveFocus(by);
      await clock.advance(100);
      return /\[(.)\]/.exec(frames.at(-1) ?? '')?.[1];
    };
    expect([await inFront(1), await inFront(1), await inFront(1), await inFront(-1)]).toEqual(['b', 'c', 'a', 'c']);
  });

  test('adds a model that was not named', async () => {
    const { live, clock, frames } = board(['a']);
    live.update(viewOf('late'));
    await clock.advance(100);
    expect(frames.at(-1)).toContain('late');
  });

  test('goes at the end, gives the cursor back, and leaves a line for each model, once', async () => {
    const { live, clock, frames, said, cursor } = board();
    live.update(viewOf('a', { state: 'answered', steps: 2, outputTokens: 1_204, costUsd: 0.5, latencyMs: 4_200 }));
    live.update(viewOf('b', { state: 'failed', error: 'no\nkey', toolCalls: { grep: 3 }, writes: 2 }));
    live.end();
    live.end();
    await clock.advance(10_000);
    expect(frames.at(-1)).toBe('');
    expect({ pending: clock.pending, isHidden: cursor.isHidden }).toEqual({ pending: 0, isHidden: false });
    expect(said).toEqual([
      '✓ a: answered · 2 steps · 1,204 tokens · $0.50 · 4.2 s',
      '✗ b: failed: no key · 0 steps · 0 tokens · 0.0 s · 2 writes proposed · grep ×3',
    ]);
  });

  test('never shows a key of the environment, also where the line would break within it', async () => {
    process.env.BOARD_TEST_API_KEY = `sk-${'0123456789'.repeat(8)}`;
    onTestFinished(() => void delete process.env.BOARD_TEST_API_KEY);
    const { live, clock, frames } = board();
    const text = `The key is ${process.env.BOARD_TEST_API_KEY}.`;
    live.update(viewOf('a', { state: 'failed', text, error: text }));
    await clock.advance(100);
    expect(frames.join('')).not.toContain('0123456789');
    expect(frames.at(-1)).toContain('BOARD_TEST_API_KEY');
  });
});
