import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { RunEvent } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { chattyModel, listen, ofType, range, seqsOf, typesOf } from './listening.ts';

const KEPT = 1_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

describe('a consumer of events', () => {
  test('that comes with the number of its last event gets those that follow it (executor 20)', async () => {
    const run = await hostOf({ script: [callTool('look'), reply('done')], tools: [toolOf('look')] }).start();
    const all = await listen(run);
    for (const after of [0, 1, 5, all.length - 1, all.length, 1_000]) {
      expect(await listen(run, { after })).toEqual(all.slice(after));
    }
  });

  test('that goes away and comes back while the run continues misses nothing (executor 20)', async () => {
    const end = gate();
    const script = [callTool('look'), () => end.pass().then(() => reply('done'))];
    const run = await hostOf({ script, tools: [toolOf('look')] }).start();
    const first: RunEvent[] = [];
    for await (const event of run.events()) {
      first.push(event);
      if (event.type === 'tool.done') break;
    }
    await end.reached;
    end.open();
    const rest = await listen(run, { after: first.at(-1)?.seq ?? 0 });
    const seqs = seqsOf([...first, ...rest]);
    expect(seqs).toEqual(range(1, seqs.length));
    expect(typesOf(rest).at(-1)).toBe('run.ended');
  });

  test('that is too slow loses pieces of text first, and gets their number in the place where they are missing (executor 20)', async () => {
    const run = await hostOf({ models: { fast: chattyModel(3_000) } }).start();
    const consumer = run.events();
    const { messages } = await run.result;
    expect(JSON.stringify(messages)).toContain('2999 ');
    const events: RunEvent[] = [];
    for await (const event of consumer) events.push(event);
    const [dropped, ...more] = ofType(events, 'events.dropped');
    const told = events.filter(({ type }) => type !== 'events.dropped');
    expect(more).toEqual([]);
    expect(told.length).toBeLessThanOrEqual(KEPT);
    expect(told.length + (dropped?.count ?? 0)).toBe(told.at(-1)?.seq);
    expect(ofType(events, 'model.delta').at(-1)?.text).toBe('2999 ');
    expect(typesOf(told).filter((type) => type !== 'model.delta')).toEqual(
      typesOf(await listen(run)).filter((type) => type !== 'model.delta' && type !== 'events.dropped'),
    );
    const order = seqsOf(events);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });

  test('that comes late gets the number of the first events that it cannot have any more (executor 20)', async () => {
    const run = await hostOf({ models: { fast: chattyModel(3_000) } }).start();
    await run.result;
    const events = await listen(run);
    const told = events.filter(({ type }) => type !== 'events.dropped');
    const missing = ofType(events, 'events.dropped').reduce((sum, { count }) => sum + count, 0);
    expect(told.length + missing).toBe(told.at(-1)?.seq);
  });

  test('reads at its own pace: the slow one holds neither the run nor the quick one up (executor 20)', async () => {
    const run = await hostOf({ models: { fast: chattyModel(2_500) } }).start();
    const slow = run.events();
    await slow.next();
    const quick = await listen(run);
    await run.result;
    expect(ofType(quick, 'events.dropped')).toEqual([]);
    expect(ofType(quick, 'model.delta')).toHaveLength(2_500);
    const rest: RunEvent[] = [];
    for await (const event of slow) rest.push(event);
    expect(ofType(rest, 'events.dropped')).toHaveLength(1);
    expect(rest.at(-1)).toEqual(quick.at(-1));
  });

  test('that asks for several events at once gets each once, in order, and the end for the rest', async () => {
    const end = gate();
    const run = await hostOf({ script: [() => end.pass().then(() => reply('done'))] }).start();
    const consumer = run.events();
    const asked = Array.from({ length: 30 }, () => consumer.next());
    end.open();
    const answers = await Promise.all(asked);
    const events = answers.filter(({ done }) => !done).map(({ value }) => value as RunEvent);
    expect(seqsOf(events)).toEqual(range(1, events.length));
    expect(events.at(-1)?.type).toBe('run.ended');
    expect(answers.at(-1)).toEqual({ done: true, value: undefined });
  });

  test('that returns early gets nothing more, and leaves nothing behind in the run (executor 20)', async () => {
    const host = hostOf({ script: [hang()] });
    const run = await host.start();
    await until(() => host.model.calls.length === 1);
    const left = await leaveEarly(run.events());
    const waiting = waitForGood(run.events());
    await settle();
    collect();
    expect(left.deref()).toBeUndefined();
    expect(await waiting).toEqual([{ done: true, value: undefined }, true]);
    await run.cancel();
  });

  test('after the end gets what there was, and its end (executor 20)', async () => {
    const run = await hostOf().start();
    await run.result;
    expect(typesOf(await listen(run)).at(-1)).toBe('run.ended');
  });
});

async function leaveEarly(events: AsyncIterableIterator<RunEvent>): Promise<WeakRef<object>> {
  for await (const _ of events) break;
  return new WeakRef(events);
}

/** A consumer that waits for an event that never comes is let go by its own return. */
async function waitForGood(events: AsyncIterableIterator<RunEvent>): Promise<unknown[]> {
  await events.next();
  let waiting = events.next();
  for (let turn = 0; turn < 10; turn++) waiting = events.next();
  const { done } = (await events.return?.()) ?? {};
  return [await waiting, done];
}
