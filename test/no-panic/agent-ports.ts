import { createPalette, defineAgent, defineSkill, memoryStore, type Palette, type Skill } from 'pawl';
import { callTool, reply, type ScriptedEntry } from 'pawl/testing';
import { turnsOf } from '../fixtures/answering-model.ts';
import { toolOf } from '../fixtures/host.ts';
import { type Failure, unreadable, withoutJson } from './failures.ts';
import { type Port, type Scene, throwing } from './scene.ts';

const ok = { else: 'ok' } as const;
const child = defineAgent({ id: 'child', instructions: 'child' });
const skill = defineSkill({ name: 'skill', description: '', input: { type: 'object' }, instructions: 'Do.' });
const calls = [callTool('agent__child', { prompt: 'x' }), callTool('skill__skill', {}), callTool('look')];

/** The agent puts both to work, whether it has them or not; whoever else is asked calls a tool and is done. */
const answer: ScriptedEntry = (request) => {
  const turn = turnsOf(request);
  if (request.system !== 'Work.') return turn === 0 && request.tools.length > 0 ? callTool('work') : reply('done');
  return calls[turn] ?? reply('done');
};

const family = (palette: Palette): Scene => ({
  options: { store: memoryStore(), ports: { palette } },
  script: Array.from({ length: 12 }, () => answer),
  tools: [toolOf('look')],
  agent: { subAgents: ['child'], skills: ['skill'] },
});

const getterIn = <T extends object>(object: T, name: string, act: () => never): T =>
  Object.defineProperty({ ...object }, name, { enumerable: true, get: act });

/** As a host's own palette may do it: without a look at what it gives. */
const giving = (agent: object, other: object = skill): Palette => ({
  resolve: (kind: string) => (kind === 'agent' ? agent : other) as never,
});

const palettePorts: readonly Port[] = [
  { name: 'palette.resolve', scene: (act) => family({ resolve: act }), ends: ok },
  ...(['id', 'instructions', 'description', 'tools', 'model', 'subAgents', 'phases', 'outputSchema'] as const).map(
    (part): Port => ({
      name: `an agent of the palette, its ${part} a getter`,
      scene: (act) => family(giving(getterIn(child, part, act))),
      failures: throwing,
      ends: ok,
    }),
  ),
  ...(['name', 'instructions', 'input', 'tools', 'model', 'bare'] as const).map(
    (part): Port => ({
      name: `a skill of the palette, its ${part} a getter`,
      scene: (act) => family(giving(child, getterIn(skill, part, act))),
      failures: throwing,
      ends: ok,
    }),
  ),
  {
    name: 'the input schema of a skill',
    scene: (act) => family(giving(child, { ...skill, input: { ...skill.input, validate: act } })),
    ends: ok,
  },
  ...(['read', 'idempotent', 'once'] as const).map(
    (effect): Port => ({
      name: `tool.execute (${effect}) of a child`,
      scene: (act) =>
        family(
          createPalette({
            agents: [defineAgent({ ...child, tools: [toolOf('work', effect, act)] })],
            skills: [skill as Skill],
          }),
        ),
      ends: ok,
    }),
  ),
];

const small = { contextTokens: { fast: 1 } };
const long = (options: NonNullable<Scene['options']>): Scene => ({
  options: { store: memoryStore(), ...options },
  script: [callTool('look', { n: 1 }), callTool('look', { n: 2 }), reply('done')],
  tools: [toolOf('look')],
});

const compactionPorts: readonly Port[] = [
  { name: 'compactor', scene: (act) => long({ ...small, compactor: act }), ends: ok },
  {
    name: 'what a compactor gives',
    scene: (act) => long({ ...small, compactor: () => [getterIn({ role: 'user' }, 'content', act) as never] }),
    failures: throwing,
    ends: ok,
  },
  {
    name: 'contextTokens, a function',
    scene: (act) => long({ contextTokens: act, compactor: (messages) => messages }),
    ends: ok,
  },
  {
    name: 'contextTokens, a getter',
    scene: (act) => long({ contextTokens: getterIn({}, 'fast', act), compactor: (messages) => messages }),
    failures: throwing,
    ends: ok,
  },
];

const standard = (validate: () => unknown) => ({
  '~standard': { version: 1, vendor: 'test', validate, jsonSchema: { input: () => ({ type: 'object' }) } },
});
const answering = (output: object): Scene => ({
  options: { store: memoryStore() },
  script: [reply('{}'), reply('{}')],
  agent: { output },
});
const odd = (failure: Failure) => (failure === 'gives what cannot be read' ? unreadable() : withoutJson());

const outputPorts: readonly Port[] = [
  { name: 'output schema', scene: (act) => answering(standard(act)), ends: { else: 'OUTPUT_INVALID' } },
  {
    name: 'what an output schema makes of an answer',
    scene: (_, failure) => answering(standard(() => ({ value: { part: odd(failure) } }))),
    failures: ['gives what cannot be read', 'gives what has a throwing toJSON'],
    ends: { else: 'OUTPUT_INVALID' },
  },
  {
    name: 'what an output schema finds wrong',
    scene: (act) => answering(standard(() => ({ issues: [getterIn({}, 'message', act)] }))),
    failures: throwing,
    ends: { else: 'OUTPUT_INVALID' },
  },
];

export const agentPorts = [...palettePorts, ...compactionPorts, ...outputPorts];
