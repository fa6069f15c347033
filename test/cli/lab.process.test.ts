import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agentFile, emptyFolder, pawl } from './pawl.ts';

/** A folder with a recorded run `r1` of the counter, in the usual store. */
async function recorded(env: NodeJS.ProcessEnv = {}): Promise<string> {
  const cwd = emptyFolder();
  const ran = await pawl(['run', agentFile('counter'), '--run-id', 'r1', '--audit'], { cwd, env });
  expect(ran).toMatchObject({ code: 0, stdout: 'counted to 3\n' });
  return cwd;
}

/** The counter, which counts with another tool. */
const changed = `import { defineAgent, defineTool } from 'pawl';
const count = defineTool({
  name: 'count', description: '', effect: 'read', execute: () => { throw new Error('ran'); },
  input: { type: 'object', properties: { n: { type: 'number', maximum: 2 } }, required: ['n'] },
});
export default defineAgent({ id: 'counter', instructions: 'Count.', tools: [count] });
`;

test('a run is exported to a file, imported into another store, and replayed there: it is the same (lab 27, 28)', async () => {
  const cwd = await recorded();
  expect(await pawl(['export', 'r1', '--out', 'runs.jsonl'], { cwd })).toMatchObject({
    code: 0,
    stdout: '',
    stderr: '',
  });
  const text = readFileSync(join(cwd, 'runs.jsonl'), 'utf8');
  expect(await pawl(['export', 'r1'], { cwd })).toMatchObject({ code: 0, stdout: text });
  if (process.platform !== 'win32') expect(statSync(join(cwd, 'runs.jsonl')).mode & 0o077).toBe(0);

  const there = ['--store', 'other.db'];
  const imported = await pawl(['import', 'runs.jsonl', ...there, '--json'], { cwd });
  expect(imported.code).toBe(0);
  expect(JSON.parse(imported.stdout)).toMatchObject({ imported: ['r1'], skipped: [], damaged: [] });
  const again = await pawl(['import', 'runs.jsonl', ...there], { cwd });
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('1 were there already') });

  const shown = await pawl(['show', 'r1', ...there], { cwd });
  expect(shown.stdout).toMatch(
    /\nstep 1 · scripted\/scripted\n {2}count .*number 1.*\n[\s\S]*step 4 · scripted\/scripted\n/,
  );

  const agent = ['--agent', agentFile('counter')];
  expect(await pawl(['replay', 'runs.jsonl', ...agent], { cwd })).toMatchObject({
    code: 0,
    stdout: 'same  r1  ok\n',
  });
  expect(await pawl(['replay', 'r1', ...agent, ...there], { cwd })).toMatchObject({
    code: 0,
    stdout: 'same  r1  ok\n',
  });
});

test('a replay with a changed agent says the step that differs, and exits with 1 (lab 28)', async () => {
  const cwd = await recorded();
  await pawl(['export', 'r1', '--out', 'runs.jsonl'], { cwd });
  writeFileSync(join(cwd, 'changed.ts'), changed);
  const replayed = await pawl(['replay', 'runs.jsonl', '--agent', 'changed.ts'], { cwd });
  expect(replayed).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^differs {2}r1 {2}ok; step 3: count: .*number 3.* → count: .*invalid input/),
  });
  const json = await pawl(['replay', 'runs.jsonl', '--agent', 'changed.ts', '--json'], { cwd });
  expect(JSON.parse(json.stdout)).toMatchObject({
    runId: 'r1',
    same: false,
    difference: { step: 3, message: 6 },
    unused: [],
  });
});

test('a replay shows long texts from the place where they differ (lab 28)', async () => {
  const cwd = emptyFolder();
  const text = "'x'.repeat(300) + process.env.END + 'y'.repeat(200)";
  writeFileSync(
    join(cwd, 'long.ts'),
    `import { defineAgent } from 'pawl';\nimport { reply, scriptedModel } from 'pawl/testing';\nexport default defineAgent({ id: 'long', instructions: 'Write.' });\nexport const models = { fast: scriptedModel([reply(${text})]) };\n`,
  );
  await pawl(['run', 'long.ts', 'Write.', '--run-id', 'r1'], { cwd, env: { END: 'one' } });
  const replayed = await pawl(['replay', 'r1', '--agent', 'long.ts', '--live-model'], { cwd, env: { END: 'two' } });
  expect(replayed.stdout).toMatch(/^differs {2}r1 {2}ok; step 1: …x{25}oney+… → …x{25}twoy+…\n$/);
});

test('with --live-model the models of the module are asked, and the recording answers their calls (lab 28)', async () => {
  const cwd = await recorded();
  const live = await pawl(
    ['replay', 'r1', '--agent', agentFile('counter'), '--live-model', '--tools', 'strict', '--json'],
    { cwd },
  );
  expect(live.code).toBe(0);
  expect(JSON.parse(live.stdout)).toMatchObject({ status: 'ok', output: 'counted to 3', missed: [], unused: [] });
  const wrong = await pawl(['replay', 'r1', '--agent', agentFile('counter'), '--on-miss', 'live'], { cwd });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("onMiss must be 'fail'") });
});

const ownModel = `
import { defineAgent } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';
export default defineAgent({ id: 'counter', instructions: 'Count.', model: scriptedModel([reply('done')]) });
`;

test('with --live-model an agent with a model of its own asks it (lab 28)', async () => {
  const cwd = await recorded();
  writeFileSync(join(cwd, 'own.ts'), ownModel);
  const live = await pawl(['replay', 'r1', '--agent', 'own.ts', '--live-model'], { cwd });
  expect(live).toMatchObject({ code: 0, stdout: expect.stringMatching(/^differs {2}r1 {2}ok; step 1: /), stderr: '' });
});

/** An agent with the tool of the counter, whose model calls it once and answers. */
const asking = (
  call: string,
  then = "reply('done')",
  execute = "throw new Error('ran')",
) => `import { defineAgent, defineTool } from 'pawl';
import { callTool, fail, reply, scriptedModel } from 'pawl/testing';
const count = defineTool({
  name: 'count', description: '', effect: 'read', input: { type: 'object' }, execute: () => { ${execute}; },
});
export default defineAgent({ id: 'counter', instructions: 'Count.', tools: [count] });
export const models = { fast: scriptedModel([${call}, ${then}]) };
`;

test('a line names the calls that drifted and the one that was missed, and --on-miss says what the model reads of it (lab 28)', async () => {
  const cwd = await recorded();
  const file = (name: string, text: string) => writeFileSync(join(cwd, name), text);
  const replayed = (agent: string, ...more: string[]) =>
    pawl(['replay', 'r1', '--agent', agent, '--live-model', ...more], { cwd });
  file('other.ts', asking("callTool('count', { n: 9 })"));
  expect(await replayed('other.ts')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('drifted count (step 1)'),
  });

  const missed = await replayed('other.ts', '--tools', 'strict');
  expect(missed).toMatchObject({ code: 1, stdout: expect.stringContaining('missed count (step 1)') });
  expect(missed.stdout).toMatch(/^differs {2}r1 {2}error.*REPLAY_MISS/);

  const told = await replayed('other.ts', '--tools', 'strict', '--on-miss', 'error', '--json');
  expect(told.code).toBe(0);
  expect(JSON.parse(told.stdout)).toMatchObject({ status: 'ok', output: 'done', missed: [{ step: 1, name: 'count' }] });
  expect(told.stdout).toContain('no result for this call');

  file('reads.ts', asking("callTool('count', { n: 9 })", "reply('done')", "return 'read it'"));
  const live = await replayed('reads.ts', '--tools', 'strict', '--on-miss', 'read-live', '--json');
  expect(live.code).toBe(0);
  expect(live.stdout).toContain('read it');
});

test('with --live-model a run that does not end ok is exit code 1 (lab 28)', async () => {
  const cwd = await recorded();
  const closed = "fail(Object.assign(new Error('the account is closed'), { statusCode: 400 }))";
  writeFileSync(join(cwd, 'fails.ts'), asking("callTool('count', { n: 1 })", closed));
  const live = await pawl(['replay', 'r1', '--agent', 'fails.ts', '--live-model'], { cwd });
  expect(live).toMatchObject({ code: 1, stdout: expect.stringMatching(/^differs {2}r1 {2}error/) });
});

test('damaged lines are named, the rest is imported and replayed, and the exit code is 1 (lab 27, 28)', async () => {
  const cwd = await recorded();
  const { stdout } = await pawl(['export', 'r1'], { cwd });
  writeFileSync(join(cwd, 'runs.jsonl'), `${stdout.replace('number 2', 'number \u001b[2J9')}${stdout}`);
  const imported = await pawl(['import', 'runs.jsonl', '--store', 'other.db'], { cwd });
  expect(imported).toMatchObject({ code: 1, stdout: expect.stringContaining('imported 1 into') });
  expect(imported.stderr).toMatch(/damaged: line \d+: .*r1/);
  const replayed = await pawl(['replay', 'runs.jsonl', '--agent', agentFile('counter')], { cwd });
  expect(replayed).toMatchObject({
    code: 1,
    stdout: 'same  r1  ok\n',
    stderr: expect.stringMatching(/damaged: line/),
  });
  expect(`${replayed.stdout}${replayed.stderr}${imported.stderr}`).not.toContain('\u001b');
});

test('a wrong call is one sentence and exit code 2, and writes no file (lab 27, 28)', async () => {
  const cwd = await recorded();
  const refused = async (args: readonly string[], why: RegExp) =>
    expect(await pawl(args, { cwd })).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(why) });
  await refused(['export'], /needs the ids of runs/);
  await refused(['export', 'r1', 'r9', '--out', 'runs.jsonl'], /run r9 cannot be read/);
  expect(readdirSync(cwd).filter((name) => name.startsWith('runs'))).toStrictEqual([]);
  await refused(['import'], /needs a file/);
  await refused(['import', 'none.jsonl'], /none\.jsonl cannot be read/);
  await refused(['replay', 'r1'], /needs a file or the id of a run, and --agent/);
  await refused(['replay', 'r9', '--agent', agentFile('counter')], /neither a file nor a run r9/);
  writeFileSync(join(cwd, 'empty.jsonl'), '');
  await refused(['replay', 'empty.jsonl', '--agent', agentFile('counter')], /no run to replay/);
});

test('an encrypted store is exported with --decrypt only, and no secret of the environment is in the file (lab 27)', async () => {
  const cwd = emptyFolder();
  writeFileSync(
    join(cwd, 'keys.ts'),
    `import { createHash } from 'node:crypto';\nimport { encrypt } from 'pawl';\nexport const codec = encrypt({ keys: { k: createHash('sha256').update('a').digest() }, current: 'k' });\n`,
  );
  writeFileSync(
    join(cwd, 'agent.ts'),
    `export { default, models, prompt } from ${JSON.stringify(agentFile('counter'))};\nexport { codec } from './keys.ts';\n`,
  );
  await pawl(['run', 'agent.ts', 'count sk-123456789', '--run-id', 'r1', '--audit'], { cwd });
  const env = { PAWL_CODEC: 'keys.ts', ACME_API_KEY: 'sk-123456789' };
  const refused = await pawl(['export', 'r1', '--out', 'runs.jsonl'], { cwd, env });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('add --decrypt') });
  expect(existsSync(join(cwd, 'runs.jsonl'))).toBe(false);
  const { code, stdout } = await pawl(['export', 'r1', '--decrypt'], { cwd, env });
  expect(code).toBe(0);
  expect(stdout).toContain('count ACME_API_KEY');
  expect(stdout).not.toContain('sk-123456789');
  writeFileSync(join(cwd, 'runs.jsonl'), stdout);
  expect(await pawl(['replay', 'runs.jsonl', '--agent', 'agent.ts'], { cwd, env })).toMatchObject({ code: 0 });
});
