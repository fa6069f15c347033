import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callTool, callTools, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { Overlay } from '../../src/edits/overlay.ts';
import { asked } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const refusal = { code: 'WRITE_OUTSIDE_ROOT', message: expect.stringContaining('it has the answers') };
const own = [
  ...['ask.json', 'ask.json.lock', 'ask.json.runs', 'ask.json.runs/records.db', 'ask.json.runs/records.db-wal'],
  ...['ask.json.12.0a1b2c3d.tmp', 'ask.json.lock.12.0a1b2c3d.tmp', 'ask.json.lock.0123456789abcdef'],
  ...[
    'ASK.JSON',
    './ask.json',
    'x/../ask.json',
    'ask.json.',
    'ask.json. .',
    'ask.json::$DATA',
    'ask\u200c.json',
    'Ask.json.RUNS/x',
  ],
];
const others = [
  'ask.json.md',
  'ask.jsonl',
  'ask.json.lockfile',
  'ask.json.runsheet',
  'x/ask.json',
  'ask.js',
  'ask.json.tmp',
];

/** A root with a checkpoint file in a folder of it, and all that may lie beside that. */
function rootWith(folder = '') {
  const root = freshFolder();
  const at = join(root, folder);
  for (const name of ['ask.json.runs', 'x']) mkdirSync(join(at, name), { recursive: true });
  for (const name of [
    'ask.json',
    'ask.json.lock',
    'ask.json.12.0a1b2c3d.tmp',
    'ask.json.runs/records.db',
    'ask.json.md',
  ]) {
    writeFileSync(join(at, name), 'what b says');
  }
  return { root, path: join(at, 'ask.json') };
}

describe('a checkpoint file in the root', () => {
  test.for(own)('what is kept there is neither read nor written by models, like %j (fan-out 7)', async (name) => {
    const { root, path } = rootWith();
    const overlay = new Overlay(root, path);
    await expect(overlay.read(name)).rejects.toMatchObject(refusal);
    await expect(overlay.write(name, 'x')).rejects.toMatchObject(refusal);
    await expect(overlay.delete(name)).rejects.toMatchObject(refusal);
    await expect(overlay.list(name)).rejects.toMatchObject(refusal);
    expect(overlay.writes()).toEqual([]);
  });

  test.for(others)('a file that is only called like it is the models’, as %j (fan-out 7)', async (name) => {
    const { root, path } = rootWith();
    const overlay = new Overlay(root, path);
    await overlay.write(name, 'x');
    expect((await overlay.read(name)).content).toBe('x');
  });

  test('listings leave it out, in a folder of the root and behind a link as well (fan-out 7)', async () => {
    const { root, path } = rootWith('deep/down');
    symlinkSync(join(root, 'deep'), join(root, 'link'));
    for (const checkpoint of [path, join(root, 'link', 'down', 'ask.json')]) {
      const overlay = new Overlay(root, checkpoint);
      const inFolder = ['deep/down/ask.json.md', 'deep/down/x/'];
      expect((await overlay.list()).entries).toEqual(['deep/', 'deep/down/', ...inFolder]);
      expect((await overlay.list('deep/down')).entries).toEqual(inFolder);
      await expect(overlay.read('deep/down/ask.json')).rejects.toMatchObject(refusal);
      await overlay.write('ask.json', 'of the model');
    }
  });

  test('one that is elsewhere, or beside the root, keeps nothing of the root from models (fan-out 7)', async () => {
    const { root } = rootWith();
    for (const checkpoint of [join(freshFolder(), 'ask.json'), join(root, '..', 'ask.json')]) {
      expect((await new Overlay(root, checkpoint).read('ask.json')).content).toBe('what b says');
    }
  });

  test('models of a fan-out see and change nothing of what it keeps, however they try (fan-out 7)', async () => {
    const root = freshFolder();
    writeFileSync(join(root, 'a.txt'), 'x');
    const calls = ['ask.json', 'ask.json.lock', 'ask.json.runs/records.db'].flatMap((path) => [
      { name: 'read_file', input: { path } },
      { name: 'write_file', input: { path, content: 'x' } },
      { name: 'delete_file', input: { path } },
    ]);
    const models = { a: [callTool('list_files'), callTools(calls), reply('of a')], b: [reply('of b')] };
    const call = asked({ models, path: join(root, 'ask.json'), root });
    const { responses } = await call.start();
    expect(responses).toMatchObject([{ text: 'of a', proposedWrites: [] }, { text: 'of b' }]);
    const told = JSON.stringify(call.models.a?.calls.at(-1)?.messages);
    expect(told).toContain('"entries":["a.txt"]');
    expect(told.match(/it has the answers/g)).toHaveLength(calls.length);
  });
});
