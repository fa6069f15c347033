import { expect, test } from 'vitest';
import { newOwner } from '../../src/store/owner.ts';
import { shownEvent } from '../../src/studio/watch/shown-event.ts';
import type { JournalEvent } from '../../src/studio/wire.ts';

const done = (output: object): JournalEvent =>
  ({
    type: 'tool.done',
    runId: 'r',
    step: 1,
    callId: 'c',
    name: 'look',
    effect: 'read',
    output,
    ms: 1,
    cursor: 'x',
  }) as never;

test('a short output of a call is sent as it is (studio 20)', () => {
  const event = done({ type: 'json', value: { paid: 42 } });
  expect(shownEvent(event)).toEqual({ event });
});

test('the process of an event is named as a person names it, and another owner stays as it is (studio 4, 9)', () => {
  const named = (owner: unknown) =>
    (shownEvent({ type: 'run.resumed', runId: 'r', owner, cursor: 'x' } as never).event as { owner?: unknown }).owner;
  const own = newOwner();
  expect(named(own)).toBe(`process ${process.pid} on this machine`);
  expect(named(own.replace(/^[^|]*/, 'web-7'))).toBe(`process ${process.pid} on web-7`);
  expect(named(own.replace(/^([^|]*)\|[^|]*/, '$1|another boot'))).toMatch(/^process \d+ on (?!this)/);
  expect([named('a queue'), named(7), named(undefined)]).toEqual(['a queue', 7, undefined]);
});

test('a long output of a call is not sent with its event, and a failed call stays one (studio 6, 20)', () => {
  for (const type of ['text', 'json', 'error-text', 'error-json', 'content']) {
    const { event, cut } = shownEvent(done({ type, value: 'x'.repeat(5_000_000) }));
    expect(cut).toEqual(['output']);
    expect(event).toMatchObject({ type: 'tool.done', callId: 'c', output: { type, value: '' } });
  }
});

test('long fields of other events are cut to their beginning, without half a character (studio 20, 27)', () => {
  const text = '👍'.repeat(50_000);
  const { event, cut } = shownEvent({
    type: 'run.ended',
    runId: 'r',
    status: 'ok',
    output: text,
    cursor: 'x',
  } as never);
  expect(cut).toEqual(['output']);
  expect((event as { output: string }).output.isWellFormed()).toBe(true);
  expect((event as { output: string }).output.length).toBe(16_384);
});
