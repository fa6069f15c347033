import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { startChild } from '../store/child-process.ts';
import { asked, freshPath, recordsOf, until } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const write = (path: string, content: string) => ({ name: 'write_file', input: { path, content } });
const read = (path: string) => callTool('read_file', { path });
const [hold, send] = [
  { name: 'hold', input: {} },
  { name: 'send', input: {} },
];
const changes = [write('a.txt', 'first'), write('b.txt', 'b')];
const more = [write('a.txt', 'second'), { name: 'delete_file', input: { path: 'b.txt' } }];

/** The record of the only model, as a process would find it that continues the run. */
async function recorded(path: string): Promise<string> {
  await using store = sqliteStore({ path: recordsOf(path), readOnly: true });
  const [run] = await store.listInterrupted();
  return JSON.stringify(await store.load(run?.runId ?? ''));
}

/** The step, in a process that is killed in the middle of it. @param mark what is to be recorded before that */
async function killedIn(calls: readonly object[], mark?: string) {
  const [path, root] = [freshPath(), freshFolder()];
  const argument = JSON.stringify(calls);
  const child = startChild({ role: root, path, argument, script: '../fan-out/writing-child.ts' });
  expect(await child.next()).toBe('held');
  if (mark) await until(async () => (await recorded(path)).includes(mark));
  await child.kill();
  return { path, root, prompt: 'Which?' };
}

describe('a process that is killed in the middle of a step that changes files', () => {
  const after = [read('a.txt'), read('b.txt'), callTool('write_file', { path: 'c', content: 'c' }), reply('done')];

  test.for([
    // Only what has effects is recorded before the step is over; what its siblings have by then goes with it.
    ['beside a call with effects it goes on', [...changes, send, hold, ...more], 'it is sent', after],
    [
      'alone it begins anew',
      [...changes, hold, ...more],
      undefined,
      [callTools([...changes, hold, ...more]), ...after],
    ],
  ] as const)('%s, and its changes are made once and in their order (fan-out 5)', async ([, calls, mark, script]) => {
    const left = await killedIn(calls, mark);
    let sends = 0;
    const sending = toolOf('send', 'once', () => {
      sends += 1;
      return 'sent again';
    });
    const call = asked({ ...left, models: { a: script }, tools: [toolOf('hold'), sending] });
    const { responses } = await call.start();
    expect(responses[0]).toMatchObject({
      ...{ text: 'done', steps: 5, toolCalls: { write_file: 4, delete_file: 1, read_file: 2, hold: 1 } },
      proposedWrites: [
        { path: 'a.txt', content: 'second', base: null },
        { path: 'c', content: 'c', base: null },
      ],
    });
    const told = JSON.stringify(call.models.a?.calls.at(-1)?.messages);
    expect(told).toContain('"content":"second"');
    expect(told).toContain('there is no file \\"b.txt\\"');
    const numbers = [...told.matchAll(/"change":(\d+)/g)].map(([, change]) => Number(change));
    expect([numbers, sends]).toEqual([[1, 2, 3, 4, 5], 0]);
  });
});
