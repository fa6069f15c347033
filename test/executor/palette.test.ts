import { createPalette, defineAgent, type Palette } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { family, reviewer, summarise } from '../fixtures/family.ts';
import { toolOf } from '../fixtures/host.ts';

describe('the palette of an executor', () => {
  test('gives an agent the agents and skills that it names, as tools with their descriptions and inputs (supervision 6)', async () => {
    const { run, model } = family(() => reply('end'));
    await run();
    expect(model.calls[0]?.tools).toEqual([
      {
        type: 'function',
        name: 'agent__reviewer',
        description: 'Reviews one file.',
        inputSchema: expect.objectContaining({ required: ['prompt'] }),
      },
      {
        type: 'function',
        name: 'skill__summarise',
        description: 'Summarises a text.',
        inputSchema: expect.objectContaining({ required: ['text', 'words'] }),
      },
    ]);
  });

  test('gives nothing to an agent that names nothing', async () => {
    const { run, model } = family(() => reply('end'), { agent: {} });
    await run();
    expect(model.calls[0]?.tools).toEqual([]);
  });

  test('is its own agents and skills, if the host gives none (supervision 6)', async () => {
    const editor = defineAgent({ id: 'editor', instructions: 'Edit.', subAgents: ['reviewer'], skills: ['summarise'] });
    const registered = { ports: {}, agents: [editor, reviewer], skills: [summarise] };
    const answers = [callTool('agent__reviewer', { prompt: 'a.md' }), reply('It is fine.'), reply('end')];
    const host = family(() => answers.shift() ?? reply('end'), registered);
    expect(await host.executor.run(editor, { prompt: 'Go.' })).toMatchObject({ status: 'ok', output: 'end' });
    expect(host.model.calls[0]?.tools.map(({ name }) => name)).toEqual(['agent__reviewer', 'skill__summarise']);
    expect(host.warned).toEqual([]);
  });

  test('that the host gives replaces its own agents and skills (supervision 6)', async () => {
    const other = defineAgent({ id: 'reviewer', description: 'Another one.', instructions: 'Review.' });
    const { run, model } = family(() => reply('end'), { agents: [other] });
    await run();
    expect(JSON.stringify(model.calls[0]?.tools)).not.toContain('Another one.');
  });

  test('without what an agent names leaves it out, with a warning for each name (supervision 6)', async () => {
    const { run, model, warned } = family(() => reply('end'), { ports: {}, tools: [toolOf('look')] });
    expect(await run()).toMatchObject({ status: 'ok' });
    expect(model.calls[0]?.tools.map(({ name }) => name)).toEqual(['look']);
    expect(warned.map(({ message }) => message)).toEqual([
      'run: this executor has no agent reviewer; the agent works without it',
      'run: this executor has no skill summarise; the agent works without it',
    ]);
  });

  const nobody = (answer: () => never): Palette => ({ resolve: answer });
  test.for([
    ['does not know a name', nobody(() => null as never)],
    [
      'throws',
      nobody(() => {
        throw new Error('no');
      }),
    ],
    ['answers with a promise', nobody(() => Promise.resolve(reviewer) as never)],
    ['answers with a promise that rejects', nobody(() => Promise.reject(new Error('no')) as never)],
    ['answers with half an agent', nobody(() => ({ instructions: 'Review.' }) as never)],
  ] as const)(
    'that %s leaves the entry out, with a warning that names it (supervision 6, faults 39)',
    async ([, own]) => {
      const { run, model, warned } = family(() => reply('end'), { ports: { palette: own } });
      expect(await run()).toMatchObject({ status: 'ok' });
      expect(model.calls[0]?.tools).toEqual([]);
      expect(warned.map(({ message }) => message)).toEqual([
        'run: this executor has no agent reviewer; the agent works without it',
        'run: this executor has no skill summarise; the agent works without it',
      ]);
    },
  );

  test('names its tools within what models take: other characters become _, 64 at most', async () => {
    const ids = ['code.review/v2', 'x'.repeat(80)];
    const agents = ids.map((id) => defineAgent({ id, instructions: 'Review.' }));
    const { run, model } = family(() => reply('end'), {
      agent: { subAgents: ids },
      ports: { palette: createPalette({ agents }) },
    });
    await run();
    const names = model.calls[0]?.tools.map(({ name }) => name);
    expect(names).toEqual(['agent__code_review_v2', `agent__${'x'.repeat(57)}`]);
  });

  test.for([
    ['of two agents', { subAgents: ['a.b', 'a_b'] }, []],
    ['of an agent that is named twice', { subAgents: ['a_b', 'a_b'] }, []],
    ['of an agent and a tool', { subAgents: ['a_b'] }, [toolOf('agent__a_b')]],
  ] as const)('refuses a clash of names %s when the agent is defined, and says which', ([, agent, tools]) => {
    const agents = ['a.b', 'a_b'].map((id) => defineAgent({ id, instructions: 'x' }));
    const options = { agent, tools, ports: { palette: createPalette({ agents }) } };
    expect(() => family(() => reply('end'), options)).toThrow('there are two tools named "agent__a_b"');
  });

  test('has no two entries of one name: TypeError', () => {
    expect(() => createPalette({ agents: [reviewer, reviewer] })).toThrow(
      'the palette has two of the agent "reviewer"',
    );
    expect(() => createPalette({ skills: [summarise, summarise] })).toThrow(
      'the palette has two of the skill "summarise"',
    );
    const named = createPalette({ agents: [reviewer] });
    expect([named.resolve('agent', 'reviewer'), named.resolve('skill', 'reviewer')]).toEqual([reviewer, null]);
    expect(named.resolve('agent', 'constructor')).toBeNull();
  });
});
