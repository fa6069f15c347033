import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
// Modules outside the repository find the package only if it has been loaded here before.
import 'pawl';
import 'pawl/testing';
import { loadAgentModule } from '../../src/cli/open/agent-module.ts';
import { emptyFolder, jsonLines, pawl } from './pawl.ts';
import { damageMessages, interruptedRun, storeRuns } from './stored-runs.ts';

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
    expect(lines.filter(({ type }) => type === 'step.done').map(({ runId }) => runId)).toEqual([
      expect.stringMatching(/^~[a-z2-7]{52}$/),
      'r',
      'r',
    ]);
    expect(lines.at(-1)).toMatchObject({ status: 'ok', output: 'done', spend: { tokens: expect.any(Number) } });
  });

  const own = "import { defineAgent } from 'pawl'; import { reply, scriptedModel } from 'pawl/testing';";
  test('needs no models where its agent has one of its own, which PAWL_MODEL replaces', async () => {
    const cwd = emptyFolder();
    const fields = "id: 'a', instructions: 'Work.', model: scriptedModel([reply('own')])";
    writeFileSync(join(cwd, 'agent.ts'), `${own} export default defineAgent({ ${fields} });`);
    expect(await pawl(['run', 'agent.ts', 'go'], { cwd })).toMatchObject({ code: 0, stdout: 'own\n' });
    const toy = join(cwd, 'node_modules/@ai-sdk/toy');
    mkdirSync(toy, { recursive: true });
    writeFileSync(join(toy, 'package.json'), '{ "name": "@ai-sdk/toy", "type": "module", "exports": "./toy.js" }');
    const model =
      "import { reply, scriptedModel } from 'pawl/testing'; export const toy = Object.assign(() => {}, { languageModel: (id) => scriptedModel([reply(id)]) });";
    writeFileSync(join(toy, 'toy.js'), model);
    const replaced = await pawl(['run', 'agent.ts', 'go'], { cwd, env: { PAWL_MODEL: 'toy/other' } });
    expect(replaced).toMatchObject({ code: 0, stdout: 'other\n' });
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
      'not a port',
      'budget, critic, palette',
    ],
    ['a port called like a method of all objects', 'export const ports = { toString: {} }', '"toString"', 'not a port'],
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

describe.concurrent('a program that starts runs, named where an agent module belongs,', () => {
  const program = `import { writeFileSync } from 'node:fs';
    import agent, { models } from './agent.ts';
    writeFileSync('started', '');
    console.log(agent.id, models);`;

  test.for([
    ['doctor', 'main.ts'],
    ['recover', 'main.ts'],
    ['run', 'main.ts', 'go'],
  ] as const)('is not imported by `pawl %s`: one line says which file to name', async (args) => {
    const cwd = moduleWith(models);
    writeFileSync(join(cwd, 'main.ts'), program);
    await storeRuns(join(cwd, '.pawl/runs.db'), interruptedRun({ agentId: 'boss', module: '' }));
    const { code, stdout, stderr } = await pawl(args, { cwd });
    expect({ code, stdout, isStarted: existsSync(join(cwd, 'started')) }).toEqual({
      code: 2,
      stdout: '',
      isStarted: false,
    });
    expect(stderr).toBe(
      `pawl: the module ${join(cwd, 'main.ts')} has no default export, and was not imported: that would run it; name the file that says \`export default defineAgent({ … })\`, or defineWorkflow\n`,
    );
  });

  test('is not needed by `pawl doctor`, which finds parked and damaged records without a module', async () => {
    const cwd = emptyFolder();
    const path = join(cwd, '.pawl/runs.db');
    await storeRuns(
      path,
      interruptedRun({ runId: 'parked', parked: { code: 'X', reason: 'looked at' } }),
      interruptedRun({ runId: 'torn' }),
      interruptedRun({ runId: 'whole' }),
    );
    damageMessages(path, 'torn');
    const { code, stdout } = await pawl(['doctor', '--json'], { cwd });
    expect(code).toBe(1);
    const verdicts = jsonLines(stdout).map(({ runId, verdict }) => [runId, verdict]);
    expect(verdicts.slice(0, 3).toSorted()).toEqual([
      ['parked', 'parked'],
      ['torn', 'unreadable'],
      ['whole', 'resumes'],
    ]);
  });

  test.for(['doctor', 'run', 'recover', 'resume'])(
    'has its place in `pawl %s --help`: importing runs the top level',
    async (command) => {
      const { stdout } = await pawl([command, '--help'], { cwd: emptyFolder() });
      expect(stdout.replaceAll('\n', ' ')).toMatch(/importing (it|a module) runs its top level/i);
    },
  );
});
