import { ask, createExecutor, defineWorkflow, memoryStore } from 'pawl';
import { httpHandler } from 'pawl/http';
import { describe, expect, test } from 'vitest';
import { assign, setup } from 'xstate';
import { until } from '../fixtures/host.ts';
import { worldOf } from './world.ts';

/** A workflow that asks one question, and has its answer as output. */
const asking = (options: object = {}) =>
  defineWorkflow({
    id: 'asking',
    machine: setup({
      types: { context: {} as { got: unknown }, output: {} as unknown },
      actors: { board: ask({ question: 'Build it?', options: ['yes', 'no'], ...options }) },
    }).createMachine({
      context: { got: null },
      initial: 'a',
      states: {
        a: {
          invoke: {
            src: 'board',
            input: { cents: 700 } as never,
            onDone: { target: 'b', actions: assign({ got: ({ event }) => event.output }) },
            onError: {
              target: 'b',
              actions: assign({ got: ({ event }) => (event.error as { message: string }).message }),
            },
          },
        },
        b: { type: 'final' },
      },
      output: ({ context }: { context: { got: unknown } }) => context.got,
    }),
  });

async function asked(options: object, store = memoryStore()) {
  const flow = asking(options);
  const executor = createExecutor({ store, journal: true, workflows: [flow], defaults: { waitLingerMs: 1_000_000 } });
  const run = await executor.start(flow, { runId: 'r', input: undefined });
  await until(async () => (await executor.waiting({ kind: 'question' })).length === 1);
  const wait = async () => (await executor.waiting({ kind: 'question' }))[0];
  const id = (await wait())?.id ?? '';
  const answer = (value: string, by?: string, from = executor) =>
    from.control('r').answer(id, value, by === undefined ? {} : { by: { id: by } });
  return { executor, run, store, wait, answer, flow, id };
}

describe('ask with a quorum', () => {
  test('has its answer once so many persons have given the same one, and the list shows who has (workflow 11)', async () => {
    const { run, wait, answer } = await asked({ quorum: 2 });
    expect(await answer('yes', 'ada')).toBe('recorded');
    expect(await answer('no', 'bob')).toBe('recorded');
    expect(await answer('yes', 'ada')).toBe('recorded');
    expect(await wait()).toMatchObject({
      quorum: 2,
      votes: [
        { by: { id: 'ada' }, value: 'yes' },
        { by: { id: 'bob' }, value: 'no' },
      ],
    });
    expect(await answer('no', 'cy')).toBe('recorded');
    expect((await run.result).data).toBe('no');
  });

  test('counts the last answer of a person (workflow 11)', async () => {
    const { run, answer } = await asked({ quorum: 2 });
    for (const value of ['yes', 'no']) await answer(value, 'ada');
    await answer('no', 'bob');
    expect((await run.result).data).toBe('no');
  });

  test('needs a name for each answer (workflow 11)', async () => {
    const { executor, answer } = await asked({ quorum: 2 });
    await expect(answer('yes')).rejects.toThrow('needs a person who decides: give { by: { id } }');
    await executor.shutdown();
  });

  test('counts the answers that the store holds for a run without a process (workflow 11)', async () => {
    const { executor, store, answer, flow } = await asked({ quorum: 2 });
    await answer('yes', 'ada');
    await executor.shutdown();
    const stranger = createExecutor({ store });
    expect(await answer('no', 'bob', stranger)).toBe('sent');
    expect((await stranger.waiting({ answers: true }))[0]?.isAnswered).toBeUndefined();
    expect(await answer('yes', 'cy', stranger)).toBe('sent');
    expect((await stranger.waiting({ answers: true }))[0]?.isAnswered).toBe(true);
    await expect(answer('yes', 'dee', stranger)).rejects.toMatchObject({ code: 'ALREADY_ANSWERED' });
    const next = createExecutor({ store, workflows: [flow] });
    await next.recover();
    await until(async () => (await store.outcomes.find('r')) !== null);
    expect(await store.outcomes.find('r')).toMatchObject({ data: 'yes' });
    await next.shutdown();
  });

  test.each([0, 101, 1.5, 'two'])('of %j is the error of its actor', async (quorum) => {
    const flow = asking({ quorum });
    const { data } = await worldOf([flow]).boot().run(flow, { runId: 'r', input: undefined });
    expect(data).toContain('quorum of ask must be a whole number from 1 to 100');
  });
});

describe('ask with approvers', () => {
  const seen: unknown[] = [];
  const approvers = (check: {
    readonly by: { readonly id: string };
    readonly input: unknown;
    readonly value: unknown;
  }) => {
    seen.push([check.by.id, check.input, check.value]);
    return check.by.id === 'ada' || (check.by.id === 'eve' ? false : { refused: `${check.by.id} is no manager` });
  };

  test('takes the answer of such a person alone, in its words or in those of Pawl, and shows that it asks (workflow 11)', async () => {
    const { run, wait, answer } = await asked({ approvers });
    expect(await wait()).toMatchObject({ approvers: true });
    await expect(answer('yes', 'bob')).rejects.toMatchObject({ code: 'ANSWER_REFUSED', message: 'bob is no manager' });
    await expect(answer('yes', 'eve')).rejects.toMatchObject({ message: 'eve may not answer this question' });
    await expect(answer('yes')).rejects.toThrow('needs a person who decides');
    seen.length = 0;
    expect(await answer('yes', 'ada')).toBe('recorded');
    expect(seen).toEqual([['ada', { cents: 700 }, 'yes']]);
    expect((await run.result).data).toBe('yes');
  });

  test('is checked for a stored run where the workflow is known, and is pending elsewhere (workflow 11)', async () => {
    const { executor, store, answer, flow } = await asked({ approvers });
    await executor.shutdown();
    const known = createExecutor({ store, workflows: [flow] });
    await expect(answer('yes', 'bob', known)).rejects.toMatchObject({ code: 'ANSWER_REFUSED' });
    expect(await answer('yes', 'bob', createExecutor({ store }))).toBe('pending');
    expect(await answer('no', 'ada', known)).toBe('sent');
    await known.recover();
    await until(async () => (await store.outcomes.find('r')) !== null);
    expect(await store.outcomes.find('r')).toMatchObject({ data: 'no' });
    await known.shutdown();
  });

  test('refuses an answer over HTTP whose key names no person, and one of another person (workflow 11)', async () => {
    const { executor, id } = await asked({ approvers });
    const post = async (by: object) => {
      const handler = httpHandler(executor, { agents: {}, authorize: () => ({ callerId: 'desk', all: true, ...by }) });
      const body = JSON.stringify({ how: 'answer', value: 'yes' });
      const headers = { 'content-type': 'application/json' };
      const request = new Request(`http://localhost/runs/r/answers/${id}`, { method: 'POST', body, headers });
      const answer = await handler(request);
      return [answer.status, ((await answer.json()) as { code?: string }).code];
    };
    expect(await post({})).toEqual([403, 'PERSON_REQUIRED']);
    expect(await post({ by: { id: 'bob' } })).toEqual([422, 'ANSWER_REFUSED']);
    expect(await post({ by: { id: 'ada' } })).toEqual([200, undefined]);
    await executor.shutdown();
  });

  test('refuses what is no function, where it is defined', () => {
    expect(() => ask({ question: 'Who?', approvers: 'ada' as never })).toThrow('ask: approvers must be a function');
  });
});
