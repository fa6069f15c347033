// A test suite as a host writes one for its own agent: node --test docs/examples/refunds/desk.test.ts
// Nothing in it takes real time: the model plays a script, and the clock is moved by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createExecutor, memoryStore, type RunOptions, type RunResult } from 'pawl';
import { callTools, recordingCheckpointer, reply, scriptedModel, type TestClock, testClock } from 'pawl/testing';
import { refundDesk } from './desk.ts';

type Store = ReturnType<typeof memoryStore>;

const TRANSFER_MS = 200;

/** What the model asks for, turn by turn; after that it answers. */
type Script = readonly (readonly { readonly name: string; readonly order: string }[])[];

const scripts: fc.Arbitrary<Script> = fc.array(
  fc.array(
    fc.record({
      name: fc.constantFrom('refund', 'look_up', 'no_such_tool'),
      order: fc.constantFrom('A1', 'B2', 'C3', 'unknown'),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  { minLength: 1, maxLength: 4 },
);

/** It goes by what is in the transcript, and so says the same in each process. */
function modelFor(script: Script) {
  const model = scriptedModel(
    Array.from({ length: script.length + 2 }, () => ({ messages }) => {
      const turn = messages.filter(({ role }) => role === 'assistant').length;
      const calls = script[turn];
      if (!calls) return reply(`Done in ${turn + 1} turns.`);
      return callTools(calls.map(({ name, order }, i) => ({ name, input: { order }, callId: `${turn}.${i}` })));
    }),
  );
  return model;
}

/** A process: an executor on what is stored, with a clock of its own. The statement outlives it, as money does. */
function processOn(store: Store, script: Script, statement: string[]) {
  const clock = testClock();
  const agent = refundDesk({
    async refund(order, reference) {
      await passes(clock, TRANSFER_MS / 2);
      statement.push(reference); // here the money moves, and only the bank knows it yet
      await passes(clock, TRANSFER_MS / 2);
      return `refunded ${order}`;
    },
  });
  const executor = createExecutor({ models: { fast: modelFor(script) }, agents: [agent], store, clock });
  const start = (options?: RunOptions) => executor.start(agent, { runId: 'case-7', prompt: 'Refund it.' }, options);
  return { clock, executor, start };
}

function passes(clock: TestClock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.setTimeout(resolve, ms));
}

/** Moves the clock until something has come. */
async function during<T>(clock: TestClock, promise: Promise<T>): Promise<T> {
  let isOver = false;
  const over = promise.finally(() => {
    isOver = true;
  });
  while (!isOver) await clock.advance(TRANSFER_MS);
  return over;
}

/** The same case, in a process that nothing happens to. */
async function undisturbed(script: Script): Promise<{ result: RunResult; statement: string[] }> {
  const statement: string[] = [];
  const { clock, start } = processOn(memoryStore(), script, statement);
  return { result: await during(clock, (await start()).result), statement };
}

/** A result without the time that each of the model's replies took. */
const told = ({ status, output, error, messages, iterations, usage }: RunResult) => ({
  ...{ status, output, error, iterations, usage },
  messages: JSON.parse(JSON.stringify(messages, (key, value) => (key === 'ms' ? undefined : value))),
});

test('that money moves is on record before it moves', async () => {
  const checkpointer = recordingCheckpointer();
  const before: unknown[] = [];
  const agent = refundDesk({
    refund: async () => {
      before.push(checkpointer.states.at(-1)?.openStep?.calls.map(({ name, state }) => `${name} ${state}`));
      return 'refunded';
    },
  });
  const executor = createExecutor({ models: { fast: modelFor([[{ name: 'refund', order: 'A1' }]]) } });
  const { status } = await executor.run(agent, { prompt: 'Refund A1.' }, { checkpointer });
  assert.equal(status, 'ok');
  assert.deepEqual(before, [['refund started']]);
  assert.equal(checkpointer.completed, 1);
});

test('a deploy after any save changes nothing: same answer, same transcript, same money', async () => {
  let deploys = 0;
  await fc.assert(
    fc.asyncProperty(scripts, fc.integer({ min: 1, max: 8 }), async (script, lastSave) => {
      const expected = await undisturbed(script);
      const statement: string[] = [];
      const store = memoryStore();
      let saves = 0;
      let leaving: Promise<void> | undefined;
      // The first process stops as soon as so much is stored.
      const saved = async (write: Promise<void>) => {
        await write;
        saves += 1;
        if (saves === lastSave) leaving = first.executor.shutdown();
      };
      const watched: Store = {
        ...store,
        save: (record, options) => saved(store.save(record, options)),
        append: (delta, options) => saved(store.append(delta, options)),
      };
      const first = processOn(watched, script, statement);
      let result = await during(first.clock, (await first.start()).result);
      await leaving;

      if (result.status === 'interrupted') {
        deploys += 1;
        const second = processOn(store, script, statement);
        assert.equal((await second.executor.recover()).resumed.length, 1);
        result = await during(second.clock, (await second.start()).result);
      }
      assert.deepEqual(told(result), told(expected.result));
      // Each run has keys of its own: as many transfers, and none twice.
      assert.deepEqual([statement.length, new Set(statement).size], Array(2).fill(expected.statement.length));
      assert.deepEqual(await store.listInterrupted(), []);
    }),
    { numRuns: 200 },
  );
  assert.ok(deploys > 20, `only ${deploys} of the runs were interrupted`);
});

test('a crash at any moment, also in the middle of a transfer, refunds nothing twice', async () => {
  let crashes = 0;
  await fc.assert(
    fc.asyncProperty(scripts, fc.nat(3 * TRANSFER_MS), async (script, crashAt) => {
      const statement: string[] = [];
      const store = memoryStore();
      const first = processOn(store, script, statement);
      await first.start();
      await first.clock.advance(crashAt);
      const record = await store.load('case-7'); // what the dead process leaves behind; its clock stands still from here
      if (!record) return;
      crashes += 1;
      const left = memoryStore();
      await left.save(record);
      const second = processOn(left, script, statement);
      await second.executor.recover();
      const result = await during(second.clock, (await second.start()).result);
      assert.notEqual(result.status, 'interrupted');
      assert.equal(new Set(statement).size, statement.length, `refunded twice: ${statement}`);
      assert.deepEqual(await left.listInterrupted(), []);
    }),
    { numRuns: 200 },
  );
  assert.ok(crashes > 20, `only ${crashes} of the runs were interrupted`);
});
