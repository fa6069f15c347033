import { memoryStore } from 'pawl';
import { callTools, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, headOfWrite, watchedStore } from '../fixtures/watched-store.ts';
import { chattyModel, listen, ofType, range, seqsOf, typesOf } from './listening.ts';

const tools = [toolOf('look'), toolOf('send', 'once')];

/** A run that did one step of two tools, and waits for its second answer. */
async function afterOneStep() {
  const store = memoryStore();
  const calls = [
    { name: 'look', input: { n: 1 } },
    { name: 'send', input: {} },
  ];
  const host = hostOf({ script: [callTools(calls), hang()], tools, store });
  const run = await host.start({ runId: 'r' });
  const heard = listen(run);
  await until(async () => host.model.calls.length === 2 && (await store.load('r'))?.iteration === 1);
  const seq = (await store.load('r'))?.seq ?? 0;
  return { host, run, heard, store, seq, left: await afterCrash(store) };
}

describe('the events of a run that is resumed', () => {
  test('continue counting from its record, and begin with run.resumed (executor 20)', async () => {
    const { left, seq } = await afterOneStep();
    expect(seq).toBeGreaterThan(0);
    const run = await hostOf({ tools, store: left }).start({ runId: 'r' });
    const events = await listen(run);
    const [resumed] = ofType(events, 'run.resumed');
    expect(resumed).toMatchObject({ iteration: 1, attempts: 1 });
    expect(ofType(events, 'run.started')).toEqual([]);
    const counted = seqsOf(events);
    expect(Math.min(...counted)).toBeGreaterThan(seq);
    expect(counted).toEqual(range(counted[0] ?? 0, (counted[0] ?? 0) + counted.length - 1));
  });

  test('tell nothing again of what is recorded (executor 20)', async () => {
    const { left } = await afterOneStep();
    const run = await hostOf({ tools, store: left, script: [reply('end')] }).start({ runId: 'r' });
    const events = await listen(run);
    expect(events.filter(({ type }) => type.startsWith('tool.'))).toEqual([]);
    expect(ofType(events, 'step.started').map(({ step }) => step)).toEqual([2]);
    expect(ofType(events, 'step.done').map(({ step }) => step)).toEqual([2]);
  });

  test('give no number twice, for a consumer that saw the shutdown and comes back (executor 20)', async () => {
    const { host, heard, store } = await afterOneStep();
    await host.executor.shutdown();
    const before = await heard;
    expect(before.at(-1)).toMatchObject({ type: 'run.ended', status: 'interrupted' });
    const run = await hostOf({ tools, store: await afterCrash(store) }).start({ runId: 'r' });
    const after = await listen(run, { after: before.at(-1)?.seq ?? 0 });
    expect(typesOf(after)).toContain('run.resumed');
  });

  test('give no number twice, however much was said since the last save of the process that died (executor 20)', async () => {
    const inner = memoryStore();
    const answered = gate();
    const store = watchedStore({ before: (call) => headOfWrite(call)?.outcome && answered.pass() }, inner);
    const run = await hostOf({ models: { fast: chattyModel(12_000) }, store }).start({ runId: 'r' });
    await answered.reached;
    const before = run.events({ after: 12_000 });
    const { value: last } = await before.next();
    const next = await hostOf({ store: await afterCrash(inner) }).start({ runId: 'r' });
    expect(Math.min(...seqsOf(await listen(next)))).toBeGreaterThan(last?.seq);
  });
});
