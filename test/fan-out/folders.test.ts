import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadCheckpoint } from 'pawl/fan-out';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, toolOf } from '../fixtures/host.ts';
import { around, asked, freshPath, recordsOf, until } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const modeOf = (path: string) => statSync(path).mode & 0o777;

/** A fan-out whose only model is asked, and waits in a tool. */
async function asking(path: string) {
  const held = gate();
  const look = toolOf('look', 'read', () => held.pass());
  const call = asked({ models: { a: [callTool('look'), reply('of a')] }, path, tools: [look] });
  const running = call.start();
  await held.reached;
  const end = () => {
    held.open();
    return running;
  };
  return { end };
}

describe('the folder of records', () => {
  test.for<readonly [what: string, put: (runs: string) => void]>([
    ['a folder with files of somebody else', (runs) => void mkdirSync(join(runs, 'mine'), { recursive: true })],
    ['a file', (runs) => writeFileSync(runs, 'mine')],
  ])('%s in its place rejects the call before anybody is asked, and stays (fan-out 3)', async ([, put]) => {
    const path = freshPath();
    put(`${path}.runs`);
    const call = asked({ models: { a: [reply('of a')] }, path });
    const refusal = { code: 'FAN_OUT_CONFLICT', message: expect.stringContaining(`${path}.runs`) };
    await expect(call.start()).rejects.toMatchObject(refusal);
    expect([call.calls(), around(path)]).toEqual([[0], ['ask.json.runs']]);
    rmSync(`${path}.runs`, { recursive: true });
    expect((await call.start()).responses[0]?.text).toBe('of a');
  });

  test('at the end what others have put there stays, and all of the fan-out’s own goes (fan-out 6)', async () => {
    const path = freshPath();
    const { end } = await asking(path);
    writeFileSync(join(`${path}.runs`, 'mine.txt'), 'mine');
    expect((await end()).saveError).toBeUndefined();
    expect(readdirSync(`${path}.runs`)).toEqual(['mine.txt']);
  });

  test('an empty one, and one that a killed process had begun to make, count as none (fan-out 5)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [reply('of a'), reply('of a')] }, path });
    mkdirSync(`${path}.runs`);
    expect((await call.start()).responses[0]?.text).toBe('of a');
    mkdirSync(`${path}.runs`);
    writeFileSync(recordsOf(path), '');
    expect((await call.start()).responses[0]?.text).toBe('of a');
    expect(around(path)).toEqual(['.pawl']);
  });

  test('records without a checkpoint file have no owner: the model begins again (fan-out 5)', async () => {
    const path = freshPath();
    const call = asked({ models: { a: [callTool('look'), hang(), reply('all of a')] }, path, tools: [toolOf('look')] });
    const caller = new AbortController();
    const running = call.start({ signal: caller.signal });
    await until(async () => call.calls()[0] === 2 && (await loadCheckpoint(path))?.responses[0]?.steps === 1);
    caller.abort();
    expect((await running).interrupted).toBe(true);
    rmSync(path);
    const { responses } = await call.start({ prompt: 'Something else?' });
    expect(responses[0]).toMatchObject({ text: 'all of a', steps: 1, toolCalls: {} });
    expect(JSON.stringify(call.models.a?.calls.at(-1)?.messages)).not.toContain('look');
  });
});

describe.skipIf(process.platform === 'win32')('who may read it', () => {
  test('only the user that asks can read the records and .pawl (fan-out 3)', async () => {
    const project = freshFolder();
    const path = join(project, '.pawl', 'ask.json');
    const { end } = await asking(path);
    expect([modeOf(dirname(path)), modeOf(`${path}.runs`), modeOf(recordsOf(path))]).toEqual([
      ...[0o700, 0o700, 0o600],
    ]);
    await end();
    const root = freshFolder();
    await asked({ models: { a: [reply('of a')] }, path: freshPath(), root }).start();
    expect(modeOf(join(root, '.pawl'))).toBe(0o700);
  });

  test('a .pawl that is there already keeps its mode (fan-out 3)', async () => {
    const path = join(freshFolder(), '.pawl', 'ask.json');
    mkdirSync(dirname(path));
    chmodSync(dirname(path), 0o755);
    await (await asking(path)).end();
    expect(modeOf(dirname(path))).toBe(0o755);
  });
});

test('while the models are asked .pawl has its .gitignore already (fan-out 3)', async () => {
  const path = join(freshFolder(), '.pawl', 'ask.json');
  const { end } = await asking(path);
  expect(readFileSync(join(dirname(path), '.gitignore'), 'utf8')).toBe('*\n');
  await end();
});
