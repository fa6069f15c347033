import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadAgentModule } from '../../src/cli/agent-module.ts';
import { emptyFolder, jsonLines, pawl } from './pawl.ts';

const agent = `import { createBudget, createPalette, defineAgent } from 'pawl';
import { callTool, reply, scriptedModel } from 'pawl/testing';
const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
export default defineAgent({ id: 'boss', instructions: 'Delegate.', subAgents: ['helper'] });
export const prompt = 'go';
`;
const models = 'export const models = { fast: scriptedModel([reply("x")]) };\n';

/** An agent module with these lines in it. */
function moduleWith(lines: string): string {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, 'agent.ts'), `${agent}${lines}`);
  return cwd;
}

describe.concurrent('an agent module', () => {
  test('may bring ports, which its runs use: here a palette and a budget', async () => {
    const cwd = moduleWith(`
      export const models = { fast: scriptedModel([callTool('agent__helper', { prompt: 'p' }), reply('helped'), reply('done')]) };
      export const ports = { palette: createPalette({ agents: [helper] }), budget: createBudget({ tokens: 1_000_000 }) };`);
    const { code, stdout, stderr } = await pawl(['run', 'agent.ts', '--run-id', 'r', '--json'], { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = jsonLines(stdout);
    expect(lines.filter(({ type }) => type === 'step.done').map(({ runId }) => runId)).toEqual(['r~call-1', 'r', 'r']);
    expect(lines.at(-1)).toMatchObject({ status: 'ok', output: 'done', spend: { tokens: expect.any(Number) } });
  });

  test('may bring a compactor and context windows, and its runs use them', async () => {
    const cwd = moduleWith(`${models}
      export const contextTokens = { fast: 1 };
      export const compactor = (messages) => { console.error('asked to compact', messages.length); return messages; };`);
    const { code, stderr } = await pawl(['run', 'agent.ts', '--json'], { cwd });
    expect(code).toBe(0);
    expect(stderr).toContain('asked to compact 1');
  });

  test.for([
    ['ports that are no object', 'export const ports = 1', '`ports`', 'must be an object', 'budget'],
    [
      'a port of another name',
      'export const ports = { budgets: {} }',
      '"budgets"',
      'no port',
      'budget, critic, palette',
    ],
    ['a port called like a method of all objects', 'export const ports = { toString: {} }', '"toString"', 'no port'],
    ['a checkpointer', 'export const ports = { checkpointer: {} }', 'checkpointer', '--store'],
    ['a budget that is none', 'export const ports = { budget: { check() {} } }', 'budget', 'reserve, commit, refund'],
    ['a critic that is a promise', 'export const ports = { critic: (async () => {})() }', 'critic', 'monitor'],
    ['no palette under its name', 'export const ports = { palette: null }', 'palette', 'resolve'],
    ['an audit whose getter throws', 'export const ports = { get audit() { throw 1 } }', 'audit', 'startRun'],
    ['a compactor that is no function', 'export const compactor = {}', '`compactor`', 'createCompactor'],
    ['windows that are a number', 'export const contextTokens = 1000', '`contextTokens`', '{ tier: tokens }'],
  ] as const)('with %s is refused in one line, and nothing is begun', async ([_, line, ...words]) => {
    const path = join(moduleWith(`${models}${line}`), 'agent.ts');
    const refusal: unknown = await loadAgentModule(path).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: 'Failure', exitCode: 2 });
    const { message } = refusal as Error;
    for (const word of [path, ...words]) expect(message).toContain(word);
    expect(message).not.toContain('\n');
  });
});
