import { expect, test } from 'vitest';
import { RunJournal } from '../../../src/executor/run/journal/run-journal.ts';
import { ToldState } from '../../../src/executor/run/journal/told-state.ts';
import type { RunEventBody } from '../../../src/run/events/body.ts';
import type { JournalEntry } from '../../../src/run/journal/entry.ts';
import type { Progress } from '../../../src/run/progress.ts';
import { Transcript } from '../../../src/run/transcript.ts';
import { testClock } from '../../../src/testing/test-clock.ts';
import type { Message } from '../../../src/values/message.ts';
import { noUsage } from '../../../src/values/usage.ts';
import { settle } from '../../fixtures/host.ts';

function journal(flushBytes = 1e9) {
  const published: JournalEntry[] = [];
  const store = { publish: async (_: string, entries: readonly JournalEntry[]) => void published.push(...entries) };
  const own = new RunJournal({
    ...{ runId: 'r', store: store as never, claim: () => ({ runId: 'r', owner: 'me', epoch: 1, attempts: 1 }) },
    ...{ options: { flushMs: 1, flushBytes, lingerMs: 1 }, clock: testClock(), warn: () => {} },
    ...{ redact: undefined, told: new ToldState(undefined), after: 0, isContinued: false, onNews: () => {} },
  });
  let seq = 0;
  const add = (body: RunEventBody) => own.add({ ...body, runId: 'r', seq: ++seq, at: 0 });
  return { own, add, published, last: () => seq };
}

const text = (step: number): RunEventBody => ({
  type: 'model.delta',
  step,
  block: 0,
  offset: 0,
  kind: 'text',
  text: 'hi',
});
const said: Message = { role: 'assistant', content: [{ type: 'text', text: 'hi' }] };
const after = (steps: number): Progress =>
  ({
    iteration: steps,
    completedPhases: [],
    earlier: { value: [] },
    transcript: Transcript.of(Array.from({ length: steps }, () => said)),
  }) as never;

test('a save of several steps leaves no pieces of them behind: a reader has each text once (web 4, 35)', async () => {
  const { own, add, published, last } = journal();
  for (const step of [1, 2, 3]) {
    add({ type: 'step.started', step });
    add(text(step));
    add({ type: 'step.done', step, usage: noUsage, tools: [] });
    // The store was away, or the throttle waited: the last state is the first that is saved.
    own.part(after(step), last());
  }
  add({ type: 'step.started', step: 4 });
  const save = own.part(after(3), last());
  expect(save.write()?.entries.filter(({ event }) => event.type === 'step.snapshot')).toHaveLength(3);
  save.landed();
  await own.flush();
  expect(published.map(({ event }) => event.type)).toEqual(['step.started']);
});

test('pieces that their step has overtaken fill no write: only what still waits counts for flushBytes (web 2, 4, 38)', async () => {
  const { own, add, published, last } = journal(1_000);
  for (let step = 1; step <= 20; step++) {
    add({ type: 'step.started', step });
    add(text(step));
    await settle();
    add({ type: 'step.done', step, usage: noUsage, tools: [] });
    const save = own.part(after(step), last());
    save.write();
    save.landed();
  }
  expect(published).toEqual([]);
  add({ type: 'step.started', step: 21 });
  add({ ...text(21), text: 'x'.repeat(1_000) } as RunEventBody);
  await own.flush();
  expect(published.map(({ event }) => event.type)).toEqual(['step.started', 'model.delta']);
});

test('a tool that reports without end, while the store is away, fills no memory (web 36)', () => {
  const { own, add, published, last } = journal();
  add({ type: 'step.started', step: 1 });
  add({ type: 'step.done', step: 1, usage: noUsage, tools: [] });
  add({ type: 'step.started', step: 2 });
  for (let i = 0; i < 20_000; i++) add({ type: 'tool.progress', callId: 'c', name: 'long', progress: i });
  const save = own.part(after(1), last());
  save.write();
  save.landed();
  return own.flush().then(() => expect(published.length).toBeLessThan(1_100));
});

test('pieces of the steps of a phase that is recorded at its end wait as one text, and only those of the newest step (web 36)', () => {
  const { own, add, published, last } = journal();
  let offset = 0;
  for (const step of [1, 2, 3, 4]) {
    add({ type: 'step.started', step });
    for (offset = 0; offset < 5_000; offset += 5) {
      add({ ...text(step), offset, text: 'piece' } as RunEventBody);
    }
    for (offset = 0; offset < 5_000; offset += 5)
      add({ type: 'tool.input', step, block: 1, offset, callId: 'c', name: 'long', text: 'piece' });
    if (step < 4) add({ type: 'step.done', step, usage: noUsage, tools: [] });
  }
  expect(own.waiting).toBeLessThan(20);
  const save = own.part(after(3), last());
  save.write();
  save.landed();
  return own.flush().then(() => {
    const texts = published.flatMap(({ event }) =>
      event.type === 'model.delta' || event.type === 'tool.input' ? [event] : [],
    );
    expect(texts.map(({ step, type, text: { length } }) => [step, type, length])).toEqual([
      [4, 'model.delta', 5_000],
      [4, 'tool.input', 5_000],
    ]);
  });
});
