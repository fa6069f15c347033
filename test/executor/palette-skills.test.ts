import { createExecutor, createPalette, defineAgent, defineSkill, type Skill } from 'pawl';
import { callTool, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { answeringModel, promptOf, resultsOf, turnsOf } from '../fixtures/answering-model.ts';
import { childId } from '../fixtures/child-id.ts';
import { asking, family, summarise } from '../fixtures/family.ts';
import { toolOf, until } from '../fixtures/host.ts';
import { mortalProcess } from '../fixtures/mortal-process.ts';
import { notingAudit } from '../fixtures/noting-ports.ts';

const askSummary = (input: object) => callTool('skill__summarise', input as never, 'c1');
const short = askSummary({ text: 'a long text', words: 3 });
const withSkill = (skill: Skill) => ({ palette: createPalette({ skills: [skill] }) });

describe('a skill', () => {
  test('is a prompt that its input is put into; one plain model call, a run of its own (supervision 6)', async () => {
    const audit = notingAudit();
    const base = { palette: createPalette({ skills: [summarise] }), audit };
    const { run, model } = family(
      asking(short, () => reply('so and so')),
      { agent: { skills: ['summarise'] }, ports: base },
    );
    expect((await run({ runId: 'r' })).output).toBe('so and so');
    const [call] = model.calls.filter(({ system }) => system !== 'Work.');
    expect(call).toMatchObject({ system: '', tools: [] });
    expect(call?.messages).toHaveLength(1);
    expect(promptOf(call as never)).toBe('In 3 words: a long text');
    expect(audit.runs.map(({ info }) => [info.runId, info.subjectId])).toContainEqual([
      childId('r', 'c1'),
      'skill:summarise',
    ]);
  });

  test('has its input checked like a tool’s: what does not fit begins no run (executor 15)', async () => {
    const { run, model } = family(asking(askSummary({ text: 'x' }), () => reply('never')));
    expect((await run()).output).toContain('invalid input for tool "skill__summarise"');
    expect(model.calls.every(({ system }) => system === 'Work.')).toBe(true);
  });

  test('whose schema does not answer is a failed call after portMs: no wait is without an end (executor 7)', async () => {
    const clock = testClock();
    const skill = { ...summarise, input: { ...summarise.input, validate: () => new Promise<never>(() => {}) } };
    const { start } = family(
      asking(short, () => reply('never')),
      { clock, ports: withSkill(skill) },
    );
    const run = await start();
    await clock.advance(30_000);
    expect((await run.result).output).toContain('the input schema of skill summarise did not answer within 30000 ms');
  });

  test('takes a Standard Schema, with what it makes of the input; what is no text is put in as JSON (supervision 6)', async () => {
    const skill = defineSkill({
      name: 'summarise',
      description: '',
      input: z.object({ text: z.string().trim(), words: z.number().default(7), tags: z.array(z.string()) }),
      instructions: '{{.text}}/{{.words}}/{{.tags}}/{{.nothing}}/{{.text.length}}',
    });
    const call = askSummary({ text: '  {{.words}}  ', tags: ['a', 'b'] });
    const { run, model } = family(
      asking(call, () => reply('done')),
      { ports: withSkill(skill) },
    );
    await run();
    const prompts = model.calls.filter(({ system }) => system !== 'Work.').map(promptOf);
    expect(prompts).toEqual(['{{.words}}/7/["a","b"]//']);
  });

  test('that is not bare is a loop with the registered tools that it names (supervision 6)', async () => {
    const skill = defineSkill({
      ...summarise,
      input: summarise.input.jsonSchema,
      bare: false,
      tools: ['look'],
      maxSteps: 3,
    });
    const model = answeringModel(
      asking(short, (request) => (turnsOf(request) === 0 ? callTool('look') : reply(`saw ${resultsOf(request)}`))),
    );
    const agent = defineAgent({ id: 'worker', instructions: 'Work.', skills: ['summarise'] });
    const executor = createExecutor({ models: { fast: model }, tools: [toolOf('look')], ports: withSkill(skill) });
    expect((await executor.run(agent, { prompt: 'Go.' })).output).toBe('saw look ok');
    const offered = model.calls
      .filter(({ system }) => system !== 'Work.')
      .map(({ tools }) => tools.map(({ name }) => name));
    expect(offered).toEqual([['look'], ['look']]);
  });

  test('that is bare has one turn: a model that calls tools all the same has not answered', async () => {
    const { run } = family(asking(short, () => callTool('look')));
    expect((await run()).output).toContain('skill:summarise ended with status error: STEP_LIMIT');
  });

  test('runs on its own tier, else on that of the agent that uses it (supervision 6)', async () => {
    for (const [model, expected] of [
      ['cheap', 'cheap'],
      [undefined, 'deep'],
    ] as const) {
      const audit = notingAudit();
      const skill = defineSkill({
        ...summarise,
        input: summarise.input.jsonSchema,
        ...(model ? { model } : {}),
      });
      const { run } = family(
        asking(short, () => reply('done')),
        {
          agent: { skills: ['summarise'], model: 'deep' },
          ports: { ...withSkill(skill), audit },
        },
      );
      await run({ runId: 'r' });
      expect(audit.runs.find(({ info }) => info.runId === childId('r', 'c1'))?.info.modelTier).toBe(expected);
    }
  });

  test('continues after a crash with what it was asked, also when a deploy has changed its text (supervision 7)', async () => {
    const skillOf = (instructions: string) =>
      defineSkill({ ...summarise, input: summarise.input.jsonSchema, instructions });
    const first = mortalProcess();
    const host = family(
      asking(short, () => new Promise(() => {})),
      {
        store: first.store,
        ports: withSkill(skillOf('Old: {{.text}}')),
      },
    );
    void host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 2);
    first.die();
    const next = mortalProcess(await first.left());
    const { run, model } = family(
      asking(short, () => reply('done')),
      {
        store: next.store,
        ports: withSkill(skillOf('New: {{.text}}')),
      },
    );
    expect(await run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'done' });
    expect(model.calls.filter(({ system }) => system !== 'Work.').map(promptOf)).toEqual(['Old: a long text']);
    expect(await next.store.listInterrupted()).toEqual([]);
  });

  test.for([
    ['a bad name', { name: 'two words' }, /1 to 57 of the characters/],
    ['a name that is too long', { name: 'x'.repeat(58) }, /1 to 57/],
    ['no description', { description: undefined }, /description must be a string/],
    ['no instructions', { instructions: 7 }, /instructions must be a string/],
    ['tools, and bare', { tools: ['look'] }, /is bare: it has no tools; set bare: false/],
    ['a cap that is none', { maxSteps: 0 }, /maxSteps must be a whole number above 0, not 0/],
    ['a schema that is none', { input: 7 }, /summarise/],
  ] as const)('with %s is refused when it is defined: TypeError', ([, part, message]) => {
    const definition = { name: 'summarise', description: '', input: { type: 'object' }, instructions: '' };
    expect(() => defineSkill({ ...definition, ...part } as never)).toThrow(TypeError);
    expect(() => defineSkill({ ...definition, ...part } as never)).toThrow(message);
  });
});
