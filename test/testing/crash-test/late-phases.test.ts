import { defineAgent, defineTool, memoryStore, type ToolEffect } from 'pawl';
import { callTool, crashTest, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { headOfWrite, isWrite, type StoreCall, watchedStore } from '../../fixtures/watched-store.ts';

const tool = (name: string, effect: ToolEffect) =>
  defineTool({ name, description: name, input: { type: 'object' }, effect, execute: () => `${name} is done` });

const turns = [
  [callTool('pay', { n: 1 }), callTool('look', { n: 2 }), reply('one')],
  [callTool('look', { n: 3 }), callTool('look', { n: 4 }), callTool('pay', { n: 5 }), reply('two')],
  [callTool('look', { n: 6 }), reply('three')],
].flat();

const agentWith = (recovery: 'step' | 'boundary') =>
  defineAgent({
    id: 'phases',
    instructions: '',
    tools: [tool('look', 'read'), tool('pay', 'once')],
    phases: ['a', 'b', 'c'].map((name) => ({ name, instructions: `Do ${name}.`, recovery })),
  });

/** As one process reaches the storage: of the writes from each end of a phase on, the first few are refused. */
function refusing(storage: ReturnType<typeof memoryStore>, writes: number) {
  let phases: number | undefined;
  let left = 0;
  const before = (call: StoreCall) => {
    const head = isWrite(call) ? headOfWrite(call) : undefined;
    if (!head || head.outcome) return;
    const count = head.completedPhases.length;
    if (phases !== undefined && count > phases) left = writes;
    phases = Math.max(count, phases ?? 0);
    if (left === 0) return;
    left -= 1;
    throw Object.assign(new Error('the store is away'), { code: 'STORE_UNAVAILABLE' });
  };
  return watchedStore({ before }, storage);
}

test.for([
  ['step', 2, ['f']],
  // Phases that begin again save no steps, and their reads may be repeated without a limit.
  ['boundary', 1, []],
] as const)(
  'with a store that fails around each end of a phase (recovery %s), a crash repeats late steps and breaks no other promise (edges 23)',
  async ([recovery, writes, broken]) => {
    const storage = memoryStore();
    const report = await crashTest({
      agent: agentWith(recovery),
      prompt: 'Go.',
      model: () => scriptedModel(turns),
      store: () => refusing(storage, writes),
      limit: torture > 1 ? 300 : 24,
      doubleCrashes: torture > 1 ? 20 : 4,
    });
    expect(report.undisturbed).toEqual({ status: 'ok', output: 'three' });
    expect(report.crashes).toBeGreaterThan(torture > 1 ? 60 : 24);
    expect([...new Set(report.violations.map(({ promise }) => promise))]).toEqual(broken);
  },
);
