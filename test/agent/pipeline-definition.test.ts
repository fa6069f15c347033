import { type AgentDefinition, defineAgent, type Phase } from 'pawl';
import { reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { systemsOf } from '../fixtures/phases.ts';

const look = toolOf('look');
const phase = (name: string, rest: Partial<Phase> = {}): Phase => ({ name, instructions: 'Work.', ...rest });
const define =
  (phases: readonly Phase[] | undefined, rest: Partial<AgentDefinition> = {}) =>
  () =>
    defineAgent({ id: 'writer', ...(phases && { phases }), ...rest });

describe('what a pipeline names is checked when its agent is defined', () => {
  test.for<[string, () => unknown, string]>([
    [
      'a template that names no earlier phase is refused with the nearest name',
      define([phase('survey'), phase('report', { instructions: 'From {{.survy}}' })]),
      'agent writer: phases[1] (report): {{.survy}} is neither Query nor an earlier phase; did you mean {{.survey}}?',
    ],
    [
      'a template that names its own phase is refused',
      define([phase('survey', { instructions: '{{.survey}}' })]),
      'phases[0] (survey): {{.survey}} is neither Query nor an earlier phase; known: {{.Query}}',
    ],
    [
      'a template that names a later phase is refused',
      define([phase('survey', { instructions: '{{.report}}' }), phase('report')]),
      'phases[0] (survey): {{.report}} is neither Query nor an earlier phase',
    ],
    [
      'a template with a name and no dot is refused',
      define([phase('a', { instructions: '{{Query}}' })]),
      '{{Query}} is neither Query nor an earlier phase; did you mean {{.Query}}?',
    ],
    [
      'a tool that the agent does not have is refused with the nearest one',
      define([phase('a', { tools: ['lok'] })], { tools: [look, 'fetch'] }),
      'agent writer: phases[0] (a): tools names "lok", which the agent does not have; did you mean look?',
    ],
    [
      'a tool of an agent without tools is refused',
      define([phase('a', { tools: ['look'] })]),
      'phases[0] (a): tools names "look", which the agent does not have; it has none',
    ],
    [
      'a sub-agent that the agent does not have is refused',
      define([phase('a', { tools: ['agent__crtic'] })], { subAgents: ['critic'] }),
      'tools names "agent__crtic", which the agent does not have; did you mean agent__critic?',
    ],
    [
      'a phase name with a space',
      define([phase('my survey')]),
      'phases[0]: its name must be of the characters A-Z a-z 0-9 _ and not begin with a digit, because templates name it: not "my survey"',
    ],
    ['a phase name with a hyphen', define([phase('my-survey')]), 'not "my-survey"'],
    ['a phase name that begins with a digit', define([phase('1st')]), 'not "1st"'],
    [
      'a phase name with letters that templates do not take',
      define([phase('übersicht')]),
      'its name must be of the characters',
    ],
    [
      'subAgents that are no list',
      define(undefined, { instructions: '', subAgents: 'critic' as never }),
      'agent writer: subAgents must be a list of names',
    ],
    [
      'a skill twice',
      define(undefined, { instructions: '', skills: ['sum', 'sum'] }),
      'agent writer: there are two tools named "skill__sum"',
    ],
    [
      'two sub-agents that one tool name stands for',
      define(undefined, { instructions: '', subAgents: ['a.b', 'a_b'] }),
      'agent writer: there are two tools named "agent__a_b"',
    ],
    [
      'two tools of one name',
      define(undefined, { instructions: '', tools: [look, 'look'] }),
      'agent writer: there are two tools named "look"',
    ],
    [
      'a tool that is none',
      define(undefined, { instructions: '', tools: [{ name: 'x' } as never] }),
      'agent writer: tools[0] is neither a tool made with defineTool nor a name',
    ],
    ['a single loop without instructions', define(undefined), 'agent writer needs instructions: a string'],
    [
      'instructions that are no text',
      define([phase('a')], { instructions: 7 as never }),
      'agent writer needs instructions: a string',
    ],
  ])('%s', ([, call, message]) => {
    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
  });

  test('names of the agent, of the registry, of sub-agents and of skills may be in the tools of a phase', () => {
    const tools = ['look', 'fetch', 'agent__critic', 'skill__sum'];
    const rest = { tools: [look, 'fetch'], subAgents: ['critic'], skills: ['sum'] };
    expect(define([phase('a', { tools })], rest)).not.toThrow();
  });

  test('phases of one name may name their own, which is empty in the first of them', async () => {
    const phases = [phase('x', { instructions: '1 {{.x}}' }), phase('x', { instructions: '2 {{.x}}' })];
    const { run, model } = hostOf({ agent: { phases }, script: [reply('one'), reply('two')] });
    await run();
    expect(systemsOf(model)).toEqual(['1 ', '2 one']);
  });

  test('an agent that was not defined here is not checked: a name that is gone is text (edges 23)', async () => {
    const phases = [phase('a', { instructions: '<{{.gone}}>' })];
    const host = hostOf({ agent: { phases }, isForeign: true, script: [reply('one')] });
    expect(await host.run()).toMatchObject({ status: 'ok' });
    expect([systemsOf(host.model), host.warnings.length]).toEqual([['<{{.gone}}>'], 0]);
  });

  test('a template may name Query, each earlier phase, one of two phases of one name, and hold braces that are not closed', () => {
    const phases = [phase('_a1'), phase('_a1', { instructions: '{{._a1}} {{ .Query }} {{' })];
    expect(define(phases)).not.toThrow();
  });

  test('a pipeline needs no instructions of its own', async () => {
    const agent = defineAgent({ id: 'writer', phases: [phase('a'), phase('b', { instructions: 'B saw {{.a}}' })] });
    expect(agent.instructions).toBe('');
    const { executor, model } = hostOf({ script: [reply('saved-a'), reply('b')] });
    expect(await executor.run(agent, { prompt: 'Go.' })).toMatchObject({ status: 'ok', output: 'b' });
    expect(systemsOf(model)).toEqual(['Work.', 'B saw saved-a']);
  });
});
