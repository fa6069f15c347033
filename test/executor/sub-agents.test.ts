import { createPalette, defineAgent, memoryStore, type RunOutcome } from 'pawl';
import { callTool, callTools, fail, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { answeringModel, promptOf, resultsOf, turnsOf } from '../fixtures/answering-model.ts';
import { childId, turnKey } from '../fixtures/child-id.ts';
import { asking, askReviewer, family, palette, reviewer, summarise } from '../fixtures/family.ts';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { notingAudit, notingBudget } from '../fixtures/noting-ports.ts';
import { speakingModel } from '../fixtures/speaking-model.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

describe('an agent that another puts to work', () => {
  test('is a run of its own: its parent, its record, the caller and inputs of the parent, and a delivered outcome (supervision 6)', async () => {
    const store = watchedStore();
    const audit = notingAudit();
    const told: RunOutcome[] = [];
    const budget = notingBudget();
    const { run } = family(
      asking(askReviewer, () => reply('fine')),
      {
        store,
        ports: { palette, audit, budget },
        onOutcome: (outcome) => void told.push(outcome),
      },
    );
    const result = await run({ runId: 'r', callerId: 'ann', channelId: 'ch', guildId: 'g', inputs: { a: 1 } });
    expect(result).toMatchObject({ status: 'ok', output: 'fine' });
    const child = audit.runs.find(({ info }) => info.runId !== 'r')?.info;
    expect(child).toMatchObject({
      runId: childId('r', 'c1'),
      subjectId: 'reviewer',
      parentRunId: 'r',
      prompt: 'Look at a.ts.',
      callerId: 'ann',
      channelId: 'ch',
      guildId: 'g',
      inputs: { a: 1 },
    });
    expect(store.log.some(({ method, args }) => method === 'delete' && args[0] === childId('r', 'c1'))).toBe(true);
    expect(told.map(({ runId, status }) => [runId, status])).toEqual([
      [childId('r', 'c1'), 'ok'],
      ['r', 'ok'],
    ]);
    expect(budget.log.filter((line) => line.startsWith('check'))).toEqual(['check ann', 'check ann']);
    expect([...budget.counted.keys()]).toEqual(
      [turnKey(childId('r', 'c1'), 1), turnKey('r', 1), turnKey('r', 2)].toSorted(
        (a, b) => budget.log.indexOf(`commit ${a}`) - budget.log.indexOf(`commit ${b}`),
      ),
    );
  });

  test('that ends badly is data for its parent: the status, the error and its last words (supervision 6)', async () => {
    const worker = defineAgent({ ...reviewer, tools: [toolOf('look')], maxSteps: 1, model: 'deep' });
    const deep = speakingModel(() => ({ text: 'It looks fine so far.', calls: [{ name: 'look' }] }));
    const fast = answeringModel(asking(askReviewer, () => reply('never')));
    const ports = { palette: createPalette({ agents: [worker], skills: [summarise] }) };
    const result = await family(() => reply('never'), { models: { fast, deep }, ports }).run();
    expect(result.status).toBe('ok');
    expect(result.output).toBe(
      'reviewer ended with status error: STEP_LIMIT: no answer after 1 steps (maxSteps)\nIts last words: It looks fine so far.',
    );
  });

  test.for([
    ['no model for its tier', { model: 'gone' }, 'UNKNOWN_TIER'],
    ['a tool that nobody registered', { tools: ['gone'] }, 'UNKNOWN_TOOL'],
  ] as const)('that cannot begin, with %s, is data for its parent too', async ([, part, code]) => {
    const broken = defineAgent({ ...reviewer, ...part });
    const own = createPalette({ agents: [broken], skills: [summarise] });
    const { run } = family(
      asking(askReviewer, () => reply('x')),
      { ports: { palette: own } },
    );
    expect(await run()).toMatchObject({ status: 'ok', output: expect.stringContaining(code) });
  });

  test('counts as a failed tool when it fails: the parent’s guards hold (executor 16)', async () => {
    const down = fail(Object.assign(new Error('down'), { isRetryable: false }));
    const { run } = family((request) =>
      request.system === 'Work.' ? callTool('agent__reviewer', { prompt: `${turnsOf(request)}` }) : down,
    );
    expect(await run()).toMatchObject({ status: 'error', error: { code: 'TOOL_LOOP' }, iterations: 3 });
  });

  test('gives its checked data, where it has an output schema (supervision 6)', async () => {
    const judge = defineAgent({
      id: 'reviewer',
      instructions: 'Review.',
      output: { type: 'object', properties: { score: { type: 'integer' } }, required: ['score'] },
    });
    const own = createPalette({ agents: [judge], skills: [summarise] });
    const { run } = family(
      asking(askReviewer, () => reply('```json\n{"score": 7}\n```')),
      { ports: { palette: own } },
    );
    expect((await run()).output).toBe('{"type":"json","value":{"score":7}}');
  });

  test('may take longer than a tool may (executor 7)', async () => {
    const { run } = family(
      asking(askReviewer, () => reply('fine')),
      { defaults: { toolTimeoutMs: 1 } },
    );
    expect(await run()).toMatchObject({ output: 'fine' });
  });

  test('may put others to work, down to the eighth level and no deeper (supervision 6)', async () => {
    const nested = defineAgent({ id: 'nested', instructions: 'Nest.', subAgents: ['nested'] });
    const depths: number[] = [];
    const { run } = family(
      (request) => {
        const depth = Number(promptOf(request)) || 0;
        if (turnsOf(request) > 0) return reply(`${depth}: ${resultsOf(request).join()}`.slice(0, 300));
        depths.push(depth);
        return callTool('agent__nested', { prompt: `${depth + 1}` });
      },
      { agent: { subAgents: ['nested'] }, ports: { palette: createPalette({ agents: [nested] }) } },
    );
    const result = await run({ prompt: '0' });
    expect(result.status).toBe('ok');
    expect(depths).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(result.output).toContain('8: agents may be nested 8 deep');
  });

  test('works side by side with others of one message, each under its own id (executor 14)', async () => {
    const audit = notingAudit();
    const calls = callTools(['a', 'b', 'c'].map((file) => ({ name: 'agent__reviewer', input: { prompt: file } })));
    const { run } = family(
      asking(calls, (request) => reply(`${promptOf(request)} is fine`)),
      {
        ports: { palette, audit },
      },
    );
    expect((await run({ runId: 'r' })).output).toBe('a is fine | b is fine | c is fine');
    const ids = audit.runs.map(({ info }) => info.runId);
    expect(new Set(ids).size).toBe(4);
    expect(ids.filter((id) => id.startsWith('~'))).toHaveLength(3);
  });

  test('has an id that fits every store, however long the ids of its parent and its call are', async () => {
    const audit = notingAudit();
    const call = callTool('agent__reviewer', { prompt: 'x' }, 'c'.repeat(600));
    const { run } = family(
      asking(call, () => reply('fine')),
      { ports: { palette, audit }, store: memoryStore() },
    );
    expect(await run({ runId: 'r'.repeat(500) })).toMatchObject({ output: 'fine' });
    const id = audit.runs.find(({ info }) => info.parentRunId !== '')?.info.runId ?? '';
    expect(id).toMatch(/^~[a-z2-7]{52}$/);
  });
});

describe('what is said to a run', () => {
  test('with children: true reaches the agents that it has put to work, and theirs (supervision 9)', async () => {
    const lead = defineAgent({ id: 'lead', instructions: 'Lead.', subAgents: ['reviewer'] });
    const held = gate();
    const heard = new Map<string, string>();
    const model = answeringModel(async (request) => {
      const turns = turnsOf(request);
      if (request.system !== 'Review.' && turns === 0)
        return callTool(request.system === 'Work.' ? 'agent__lead' : 'agent__reviewer', { prompt: 'Go on.' });
      if (request.system === 'Review.' && turns === 0) {
        await held.pass();
        return callTool('nobody');
      }
      heard.set(request.system, JSON.stringify(request.messages));
      return reply('end');
    });
    const { start } = hostOf({
      models: { fast: model },
      agent: { subAgents: ['lead'] },
      ports: { palette: createPalette({ agents: [lead, reviewer] }) },
      store: memoryStore(),
    });
    const run = await start({ runId: 'r' });
    await until(() => model.calls.length === 3);
    expect(await run.steer('Only you.')).toBe('durable');
    expect(await run.steer('All of you.', { children: true })).toBe('durable');
    await settle();
    held.open();
    await run.result;
    for (const system of ['Work.', 'Lead.', 'Review.']) {
      expect(heard.get(system), system).toContain('All of you.');
      expect(heard.get(system)?.includes('Only you.'), system).toBe(system === 'Work.');
    }
  });
});
