import { setTimeout as sleep } from 'node:timers/promises';
import { type CheckpointStore, type Executor, memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { asking, runsOnFunction } from '../../docs/examples/queues/function.ts';
import { runsOnQueue } from '../../docs/examples/queues/sqs.ts';
import { randomFrom, seed } from '../crash/random.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { FakeQueue, type Trouble } from './fake-queue.ts';
import { ended, QueuedRuns, uncutMessages } from './queued-runs.ts';

const runIds = Array.from({ length: 4 }, (_, i) => `run-${i}`);

/** All ended with the messages of an uncut run, each call was made, and no `once` call began twice. */
async function expectUncut(runs: QueuedRuns, { executor, store }: { executor: Executor; store: CheckpointStore }) {
  const uncut = await uncutMessages(store);
  for (const runId of runIds) expect(await executor.messages(runId), runId).toEqual(uncut);
  expect(runs.repeated()).toEqual([]);
  expect(new Set(runs.began).size).toBe(runIds.length * 12);
}

describe('a queue like SQS', () => {
  /** Three hosts on one store take messages until all runs have ended; a sweep comes each so many ms, or never. */
  async function throughQueue(trouble: Trouble, sweepMs?: number) {
    const queue = new FakeQueue(randomFrom(seed), trouble);
    const store = memoryStore();
    const runs = new QueuedRuns(store);
    const recipe = runsOnQueue({ queue, budgetMs: 15, graceMs: 1_000 });
    const hosts = [1, 2, 3].map(() => runs.host({ onDue: recipe.onDue }));
    const [{ executor, agent }] = hosts as [(typeof hosts)[number]];
    for (const runId of runIds) await executor.start(agent, { runId, prompt: 'Begin.' }, { drive: 'later' });
    let isOver = false;
    let slices = 0;
    const takers = hosts.map(async (host) => {
      while (!isOver) {
        if (await recipe.handleOne(host.executor)) slices += 1;
        else await sleep(2);
      }
    });
    try {
      await ended(executor, runIds, async () => {
        await sleep(sweepMs ?? 10);
        if (sweepMs !== undefined) await recipe.sweep(executor);
      });
    } finally {
      isOver = true;
      await Promise.all(takers);
    }
    await expectUncut(runs, { executor, store });
    await Promise.all(hosts.map((host) => host.executor.shutdown()));
    return slices;
  }

  test('works on runs in slices, each a message (engine 33)', async () => {
    expect(await throughQueue({})).toBeGreaterThan(2 * runIds.length);
  });

  const troubles: readonly (readonly [string, Trouble])[] = [
    ['twice', { twice: 0.5, undeleted: 0.3 }],
    ['late and out of order', { lateMs: 30 }],
    ['never, one of five', { never: 0.2 }],
    ['never at all', { never: 1 }],
    ['in all these ways', { twice: 0.3, undeleted: 0.3, lateMs: 20, never: 0.3 }],
  ];
  test.for(troubles)(`that delivers %s: the same result (seed ${seed}) (engine 33, 34)`, async ([, trouble]) => {
    await throughQueue(trouble, 40);
  });
});

describe('a run that waits, on a queue like SQS', () => {
  test('has no message until a person answers, and a late one until its time has come (engine 33)', async () => {
    const queue = new FakeQueue(randomFrom(seed));
    const recipe = runsOnQueue({ queue });
    const book = toolOf('book', 'read', async (_, { ask, sleep }) => {
      const time = await ask({ question: 'At which time?' });
      await sleep(400);
      return String(time);
    });
    const script = [callTool('book'), reply('booked')];
    const { executor, agent, model } = hostOf({
      ...{ script, tools: [book], store: memoryStore(), onDue: recipe.onDue },
      defaults: { waitLingerMs: 1 },
    });
    await executor.start(agent, { runId: 'r', prompt: 'Book.' }, { drive: 'later' });
    await until(() => queue.size === 1);
    expect(await recipe.handleOne(executor)).toBe(true);
    expect(queue.size).toBe(0);

    const [waiting] = await executor.waiting();
    await executor.control('r').answer(waiting?.id ?? '', '20:00');
    await until(() => queue.size === 1);
    let handled = 0;
    const answeredAt = performance.now();
    while (queue.size > 0) {
      if (await recipe.handleOne(executor)) handled += 1;
      else await sleep(1);
    }
    expect(performance.now() - answeredAt).toBeGreaterThan(390);
    expect((await executor.find('r'))?.status).toBe('ended');
    // A slice for the answer, and one for the time; messages that came before it made none.
    expect(handled).toBeGreaterThan(2);
    expect(model.calls).toHaveLength(2);
    await executor.shutdown();
  });
});

describe('a function with a cron', () => {
  /** Requests reach new instances of the function, some twice and some never; the cron's are among them. */
  async function throughFunctions({ twice, never }: { twice: number; never: number }) {
    const random = randomFrom(seed);
    const store = memoryStore();
    const runs = new QueuedRuns(store);
    const secret = 'not to be guessed';
    const under: Promise<unknown>[] = [];
    const answers: Response[] = [];
    const instance = () => {
      const options = { url: 'https://functions.test/pawl', secret, limitMs: 200, fetch: requested };
      const { executor, agent } = runs.host({ onDue: asking(options) });
      return { executor, handler: runsOnFunction({ ...options, executor, agent }) };
    };
    /** One that answers at once: whoever asks does not wait for the slice. */
    const requested: typeof fetch = async (input, init) => {
      if (random() < never) throw new Error('the request was lost');
      for (let copies = random() < twice ? 2 : 1; copies > 0; copies--) {
        under.push(
          instance()
            .handler(new Request(input, init))
            .then((answer) => answers.push(answer)),
        );
      }
      return new Response();
    };
    const post = (path: string, body?: object) =>
      new Request(`https://functions.test/pawl${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}` },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
    const { executor, handler } = instance();
    for (const id of runIds) expect((await handler(post('/runs', { id, prompt: 'Begin.' }))).status).toBe(202);
    await ended(executor, runIds, async () => {
      await sleep(20);
      await instance().handler(post('/cron'));
    });
    while (under.length > 0) await Promise.all(under.splice(0));
    expect((await handler(new Request('https://functions.test/pawl/cron', { method: 'POST' }))).status).toBe(401);
    await expectUncut(runs, { executor, store });
    return answers.length;
  }

  test('works on runs in slices, each a request (engine 33)', async () => {
    expect(await throughFunctions({ twice: 0, never: 0 })).toBeGreaterThan(runIds.length);
  });

  test(`whose requests come twice or never: the same result (seed ${seed}) (engine 33, 34)`, async () => {
    await throughFunctions({ twice: 0.4, never: 0.4 });
  });

  test('whose requests never come: the cron alone ends the runs (engine 33, 34)', async () => {
    expect(await throughFunctions({ twice: 0, never: 1 })).toBe(0);
  });
});

describe('the recipes', () => {
  test('have less than 60 lines each (engine 33)', async () => {
    const { readFileSync } = await import('node:fs');
    const names = ['pg-boss', 'sqs', 'function'];
    const text = (name: string) =>
      readFileSync(new URL(`../../docs/examples/queues/${name}.ts`, import.meta.url), 'utf8');
    expect(names.filter((name) => text(name).split('\n').length > 60)).toEqual([]);
  });
});
