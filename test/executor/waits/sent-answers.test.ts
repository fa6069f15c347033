import { createExecutor, defineAgent, defineTool, type Person, type ToolDefinition } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type DeskOptions, deskOf, refundTool } from '../../fixtures/approval-desk.ts';
import { gate, settle, until } from '../../fixtures/host.ts';

const ada: Person = { id: 'ada', name: 'Ada' };
const bob: Person = { id: 'bob' };
type Approval = NonNullable<ToolDefinition<unknown, unknown>['approval']>;

const codeOf = (promise: Promise<unknown>) =>
  promise.then(String, (error: { code?: string; name: string }) => error.code ?? error.name);

const rulesOf = (approval: Approval) => ({ needsApproval: true, approval });

/** A run that waits for an approval: live in another process, or at rest. */
async function waitingRun(where: 'live elsewhere' | 'at rest', approval: Approval = {}, options: DeskOptions = {}) {
  const desk = deskOf({ rules: rulesOf(approval), ...options });
  const begun = await desk.begin();
  const id = begun.wait().id;
  if (where === 'at rest') {
    await desk.linger();
    await desk.executor.shutdown();
  }
  const inbox = async () => (await desk.noted.inner.commands.inbox({ runId: 'r' })).length;
  /** Another process on the same store. */
  const other = (rules: Approval = approval, more: DeskOptions = {}) =>
    deskOf({ clock: desk.clock, noted: desk.noted, script: [reply('done')], rules: rulesOf(rules), ...more });
  return { ...desk, ...begun, id, inbox, other };
}

describe.for(['live elsewhere', 'at rest'] as const)('an answer to a run that is %s', (where) => {
  test.for<[string, Approval, { input?: unknown; by?: Person }]>([
    ['with an input that its tool does not take', { editable: true }, { input: { cents: 'many' } }],
    ['of a person whom the tool refuses', { approvers: ({ by }) => by.id === 'bob' || { refused: 'bob decides' } }, {}],
  ])('%s is refused where it is sent, and nothing is stored (edges 22)', async ([, approval, given]) => {
    const run = await waitingRun(where, approval);
    const control = run.other().executor.control('r');
    expect(await codeOf(control.approve(run.id, { by: ada, ...(given as object) }))).toBe('ANSWER_REFUSED');
    expect(await run.inbox()).toBe(0);
    expect(await control.approve(run.id, { by: bob })).toBe('sent');
  });

  test('that a person may not give is refused there as a denial too (edges 22)', async () => {
    const run = await waitingRun(where, { approvers: ({ by }) => by.id === 'bob' || { refused: 'bob decides' } });
    const control = run.other().executor.control('r');
    await expect(control.deny(run.id, { by: ada })).rejects.toMatchObject({
      code: 'ANSWER_REFUSED',
      message: 'bob decides',
    });
    expect(await control.deny(run.id, { by: bob })).toBe('sent');
  });

  test('is pending where the agent is not known and the run may refuse it; any other is sent (edges 22)', async () => {
    for (const [approval, given, state] of [
      [{ approvers: () => true }, {}, 'pending'],
      [{ editable: true }, { input: { cents: 5 } }, 'pending'],
      [{ editable: true }, {}, 'sent'],
    ] as const) {
      const run = await waitingRun(where, approval as Approval);
      const models = { fast: scriptedModel([]) };
      const office = createExecutor({ models, store: run.noted.store, clock: run.clock });
      expect(await office.control('r').approve(run.id, { by: ada, ...given })).toBe(state);
    }
  });

  test.for<[string, (who: Person) => unknown]>([
    ['throw', () => Promise.reject(new Error('the directory is away'))],
    ['hang', () => new Promise(() => {})],
  ])(
    'is pending where its approvers %s, and the process that has the run decides (edges 22)',
    async ([how, broken]) => {
      const approvers = ({ by }: { by: Person }) => by.id === 'ada' || { refused: 'only ada' };
      const run = await waitingRun(where, { approvers });
      const sender = run.other({ approvers: (({ by }: { by: Person }) => broken(by)) as never });
      const sent = sender.executor.control('r').approve(run.id, { by: ada });
      if (how === 'hang') {
        await settle();
        await run.clock.advance(60_000);
      }
      expect(await sent).toBe('pending');
      if (where === 'live elsewhere') {
        await run.clock.advance(500);
        await until(() => run.paid.length === 1);
        return;
      }
      const owner = run.other();
      await owner.executor.recover();
      await until(() => owner.paid.length === 1);
    },
  );
});

/** What a person has approved is not what the next deploy would do. */
describe('after a deploy', () => {
  /** Approves in a process of the new deploy, which then has the run. */
  async function approvedBy(next: DeskOptions, approval: Approval = {}) {
    const run = await waitingRun('at rest', approval);
    const desk = run.other(approval, next);
    const { executor } = desk;
    const state = await executor.control('r').approve(run.id, { by: ada });
    const again = await desk.begin();
    return { ...desk, run, state, again };
  }

  test('that took the tool away, an approval is pending, and its call is an error result: the run continues (edges 22)', async () => {
    const { run, state, again, executor, paid, noted, model } = await approvedBy({ tools: [] });
    expect(state).toBe('pending');
    expect((await again.run.result).status).toBe('ok');
    expect(paid).toEqual([]);
    const output = { type: 'error-text', value: 'there is no tool named "refund"' };
    expect(model.calls.at(-1)?.messages.at(-1)?.content).toMatchObject([{ toolCallId: 'c1', output }]);
    expect(again.seen.flatMap(({ type }) => (type.startsWith('wait.') ? type : []))).toEqual([
      'wait.withdrawn',
      'wait.refused',
    ]);
    expect(await codeOf(executor.control('r').approve(run.id, { by: ada }))).toBe('WAIT_GONE');
    expect(await noted.inner.commands.inbox({ runId: 'r' })).toEqual([]);
  });

  test.for<[string, DeskOptions]>([
    ['another quorum', { rules: rulesOf({ quorum: 2 }) }],
    ['a rule about who decides', { rules: rulesOf({ approvers: () => true }) }],
    [
      'another schema',
      {
        tools: [
          defineTool({
            name: 'refund',
            description: 'Pays money back.',
            input: { type: 'object', properties: { cents: { type: 'number' }, note: { type: 'string' } } },
            needsApproval: true,
            execute: () => 'paid',
          }),
        ],
      },
    ],
  ])('that gave the tool %s, the question is asked again, once (edges 22)', async ([, next]) => {
    const { run, state, again, executor, paid } = await approvedBy(next);
    expect(state).toBe('pending');
    expect(again.wait().id).not.toBe(run.id);
    expect(again.wait()).toMatchObject({ votes: [], kind: 'approval' });
    expect(await codeOf(executor.control('r').approve(run.id, { by: ada }))).toBe('WAIT_GONE');
    expect(paid).toEqual([]);
    const { id, quorum } = again.wait();
    for (const by of [ada, bob].slice(0, quorum)) await executor.control('r').approve(id, { by });
    expect((await again.run.result).status).toBe('ok');
  });

  test('whose tool takes the input no more, the call is an error result (edges 22)', async () => {
    const strict = defineTool({
      name: 'refund',
      description: 'Pays money back.',
      input: { type: 'object', properties: { cents: { type: 'number', maximum: 100 } } },
      needsApproval: true,
      execute: () => 'paid',
    });
    const { state, again, model } = await approvedBy({ tools: [strict] });
    expect(state).toBe('pending');
    expect((await again.run.result).status).toBe('ok');
    expect(JSON.stringify(model.calls.at(-1)?.messages.at(-1))).toContain('invalid input for tool');
  });

  test('that changed nothing of the tool, an approval is sent, and counts (edges 22)', async () => {
    const { state, again, paid } = await approvedBy({});
    expect(state).toBe('sent');
    expect((await again.run.result).status).toBe('ok');
    expect(paid).toEqual([700]);
  });
});

describe('a changed input', () => {
  const approval: Approval = {
    editable: true,
    quorum: 2,
    prompt: ({ cents }: { cents: number }) => `Pay ${cents} cents?`,
    detail: ({ cents }: { cents: number }) => ({ euros: cents / 100 }),
  } as Approval;

  test.for(['live', 'stored'] as const)(
    'has a question, facts and a digest of its own, and the other persons read who changed what (%s) (edges 22)',
    async (how) => {
      const run = await waitingRun('live elsewhere', approval);
      const before = run.wait();
      await run.control.approve(run.id, { by: ada, input: { cents: 5 } });
      const reader = how === 'live' ? run.executor : run.other().executor;
      const [wait] = await reader.waiting();
      expect(wait).toMatchObject({
        ...{ id: run.id, prompt: 'Pay 5 cents?', detail: { euros: 0.05 }, input: { cents: 5 } },
        ...{ modelInput: { cents: 700 }, changedBy: ada, votes: [{ by: ada }] },
      });
      expect((wait as { digest: string }).digest).not.toBe(before.digest);
      expect(run.seen.at(-1)).toMatchObject({
        ...{ type: 'wait.answered', votes: 1, by: ada },
        wait: { prompt: 'Pay 5 cents?', input: { cents: 5 }, changedBy: ada },
      });
      // The card that another person still has shows the sentence before it.
      expect(await codeOf(run.control.approve(run.id, { by: bob, digest: before.digest }))).toBe('ANSWER_REFUSED');
      await run.control.approve(run.id, { by: bob, digest: (wait as { digest: string }).digest });
      await run.run.result;
      expect(run.paid).toEqual([5]);
    },
  );

  test('without a question of its tool keeps none of the input before it (edges 22)', async () => {
    const once: Approval = {
      editable: true,
      quorum: 2,
      prompt: ({ cents }: { cents: number }) => (cents === 700 ? 'Pay 700?' : ''),
      detail: ({ cents }: { cents: number }) => (cents === 700 ? 'much' : (undefined as never)),
    } as Approval;
    const run = await waitingRun('live elsewhere', once);
    await run.control.approve(run.id, { by: ada, input: { cents: 5 } });
    expect(run.wait()).not.toHaveProperty('prompt');
    expect(run.wait()).not.toHaveProperty('detail');
  });

  test('of a call that asks something afterwards is what its question is shown with (edges 22)', async () => {
    const book = defineTool({
      name: 'refund',
      description: 'Books.',
      input: { type: 'object' },
      needsApproval: true,
      approval: { editable: true },
      effect: 'idempotent',
      execute: async ({ cents }, { ask }) => `${await ask({ question: `Pay ${String(cents)} to whom?` })}`,
    });
    const run = await waitingRun('live elsewhere', {}, { tools: [book] });
    await run.control.approve(run.id, { by: ada, input: { cents: 5 } });
    await settle();
    expect(run.seen.at(-2)).toMatchObject({
      type: 'wait.opened',
      wait: { question: 'Pay 5 to whom?' },
      input: { cents: 5 },
    });
    expect(await run.executor.waiting()).toMatchObject([
      { kind: 'question', input: { cents: 5 }, modelInput: { cents: 700 } },
    ]);
  });
});

describe('a wait is shown', () => {
  test('once the record has it: after a crash before that, no answer would find it (edges 22)', async () => {
    const desk = deskOf();
    const door = gate();
    for (const method of ['save', 'append'] as const)
      desk.noted.rule(method, async (call, ...args) => {
        if (JSON.stringify(args).includes('"kind":"approval"')) await door.pass();
        return call();
      });
    const { wait, executor } = { ...desk, ...(await desk.begin()) };
    await door.reached;
    expect(wait().kind).toBe('approval');
    expect(await executor.waiting()).toEqual([]);
    expect((await executor.list()).flatMap((line) => ('waits' in line ? line.waits : []))).toEqual([]);
    door.open();
    await settle();
    expect(await executor.waiting()).toHaveLength(1);
    expect(await executor.control('r').approve(wait().id, { by: ada })).toBe('recorded');
  });

  test('no longer once its run is being ended (edges 22)', async () => {
    const slow = defineTool({
      name: 'slow',
      description: 'Takes long.',
      input: { type: 'object' },
      effect: 'read',
      execute: () => new Promise(() => {}),
    });
    const agent = defineAgent({ id: 'worker', instructions: 'x', tools: [slow, refundTool()] });
    const executor = createExecutor({
      models: { fast: scriptedModel([callTool('refund', { cents: 1 })]) },
      agents: [agent],
    });
    const run = await executor.start(agent, { runId: 'r', prompt: 'x' });
    await until(async () => (await executor.waiting()).length === 1);
    const ending = executor.control('r').cancel();
    expect(await executor.waiting()).toEqual([]);
    await ending;
    expect((await run.result).status).toBe('cancelled');
  });
});
