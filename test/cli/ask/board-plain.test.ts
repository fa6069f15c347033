import { describe, expect, test } from 'vitest';
import { PlainBoard } from '../../../src/cli/ask/ask-progress.ts';
import { askReportOf } from '../../../src/cli/ask/ask-report.ts';
import { viewOf } from './board-views.ts';

describe('the lines about several models in a pipe (fan-out 8)', () => {
  test('there is one when a model begins, when it has finished a step, and when it ends (fan-out 8)', () => {
    const said: string[] = [];
    const board = new PlainBoard({ say: (text) => void said.push(text) });
    board.update(viewOf('a', { state: 'waiting' }));
    board.update(viewOf('b'));
    board.update(viewOf('a', { text: 'Let' }));
    board.update(viewOf('a', { text: 'Let me', state: 'calling-tools' }));
    board.update(viewOf('a', { steps: 1, inputTokens: 400, toolCalls: { grep: 1 } }));
    board.update(viewOf('a', { steps: 1, inputTokens: 400, toolCalls: { grep: 1, read_file: 1 } }));
    board.update(viewOf('a', { steps: 2, inputTokens: 812, toolCalls: { grep: 1, read_file: 2 } }));
    const end = { steps: 3, inputTokens: 1_100, outputTokens: 104, costUsd: 0.0031, latencyMs: 4_200 };
    board.update(viewOf('a', { ...end, state: 'answered', toolCalls: { grep: 1, read_file: 2 } }));
    board.update(viewOf('a', { ...end, state: 'answered' }));
    board.update(viewOf('b', { state: 'failed', error: 'no answer:\n\u001b[31mrefused' }));
    board.moveFocus(1);
    board.end();
    expect(said).toEqual([
      'b: starts',
      'a: starts',
      'a: step 1: grep; 400 tokens so far',
      'a: step 2: read_file ×2; 812 tokens so far',
      'a: answered, 3 steps, 1,204 tokens, $0.0031, 4.2 s, grep, read_file ×2',
      'b: failed: no answer: refused, 0 steps, 0 tokens, 0.0 s',
    ]);
  });

  test('a model that had begun in another process continues, and what it did there is not told again', () => {
    const said: string[] = [];
    const board = new PlainBoard({ say: (text) => void said.push(text) });
    board.update(viewOf('a', { steps: 2, inputTokens: 400, toolCalls: { grep: 5 } }));
    board.update(viewOf('a', { steps: 3, inputTokens: 500, toolCalls: { grep: 6 } }));
    expect(said).toEqual(['a: continues after step 2', 'a: step 3: grep; 500 tokens so far']);
  });
});

describe('the answers on stdout (fan-out 8)', () => {
  test('each stands below a heading with the name of its model, as it was written (fan-out 8)', () => {
    const answers = [
      { modelId: 'sonnet', text: '\n  indented code\n\n# A heading\n\n', interrupted: false },
      { modelId: 'gpt', text: '', error: 'no\nanswer', interrupted: false },
      { modelId: 'qwen', text: 'As far as it', interrupted: true },
      { modelId: 'mute', text: ' \n', interrupted: false },
    ];
    expect(askReportOf(answers)).toBe(`## sonnet

  indented code

# A heading

## gpt (failed)

Error: no answer

## qwen (interrupted)

As far as it

## mute

(no text)`);
  });
});
