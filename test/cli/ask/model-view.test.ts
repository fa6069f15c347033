import { describe, expect, test } from 'vitest';
import { AskView } from '../../../src/cli/ask/model-view.ts';
import type { RunEvent } from '../../../src/run/events/body.ts';

const said = (text: string, offset = 0, step = 1): RunEvent => ({
  ...{ type: 'model.delta', step, block: 0, offset, kind: 'text', text },
  ...{ runId: 'r', seq: 1, at: 0 },
});
const reset: RunEvent = { type: 'step.reset', step: 1, runId: 'r', seq: 2, at: 0 };
const seen = (...events: readonly RunEvent[]) => {
  const view = new AskView('a');
  for (const event of events) view.heed(event);
  return view.view.text;
};

describe('the text of a model on the board (fan-out 8)', () => {
  test('is the beginning of the answer where pieces are missing, and each piece once', () => {
    expect(seen(said('Hel'), said('lo', 3), said('lo', 3), said('!', 9))).toBe('Hello');
  });

  test('is empty after a reset, and comes again from its beginning', () => {
    expect(seen(said('Hel'), reset)).toBe('');
    expect(seen(said('Hel'), reset, said('Bye'))).toBe('Bye');
  });

  test('keeps the end of a very long answer', () => {
    const text = seen(said('a'.repeat(70_000)), said('end', 70_000));
    expect(text.length).toBe(65_536);
    expect(text.endsWith('aend')).toBe(true);
  });
});
