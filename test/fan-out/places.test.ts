import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IncrementalSaver, loadCheckpoint, saveCheckpoint, snapshotFromPartial } from 'pawl/fan-out';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toolOf } from '../fixtures/host.ts';
import { around, asked, freshPath, prompt } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

/** The working folder is another one until the test is over. */
function enter(folder: string): void {
  const before = process.cwd();
  process.chdir(folder);
  onTestFinished(() => process.chdir(before));
}

describe('places', () => {
  test('a path and a root that are relative stay where they were when the host changes its working folder (fan-out 6)', async () => {
    const [home, elsewhere] = [freshFolder(), freshFolder()];
    mkdirSync(join(home, 'project'));
    writeFileSync(join(home, 'project', 'a.txt'), 'of home');
    enter(home);
    const wander = toolOf('wander', 'read', () => process.chdir(elsewhere));
    const models = { a: [callTool('wander'), callTool('read_file', { path: 'a.txt' }), reply('of a')] };
    const call = asked({ models, tools: [wander], path: 'ask.json', root: 'project' });
    const result = await call.start();
    expect(result).toMatchObject({ responses: [{ text: 'of a' }] });
    expect(JSON.stringify(call.models.a?.calls.at(-1)?.messages)).toContain('of home');
    expect(result.path).toBe(join(home, 'project', '.pawl', 'answers.json'));
    expect([around(join(home, 'x')), around(join(elsewhere, 'x'))]).toEqual([['project'], []]);
  });

  test('a checkpoint file in the place of the file of answers is refused: it would go when they come (fan-out 6)', async () => {
    const home = freshFolder();
    const path = join(home, '.pawl', 'answers.json');
    for (const options of [{ path }, { path, root: home }]) {
      const call = asked({ models: { a: [reply('of a')] }, ...options });
      await expect(call.start()).rejects.toThrow(/is the file for the final answers/);
      expect(call.models.a?.calls).toHaveLength(0);
    }
    expect(around(join(home, 'x'))).toEqual([]);
  });

  test.for(['is not there', 'is a file'])(
    'a root that %s rejects the call before anybody is asked (fan-out 1)',
    async (what) => {
      const [home, path] = [freshFolder(), freshPath()];
      const root = join(home, 'project');
      if (what === 'is a file') writeFileSync(root, '');
      for (const options of [{ root }, { root, path }]) {
        const call = asked({ models: { a: [reply('of a')] }, ...options });
        const refusal = { code: 'WRITE_FAILED', message: expect.stringContaining(root) };
        await expect(call.start()).rejects.toMatchObject(refusal);
        expect([call.calls(), around(path)]).toEqual([[0], []]);
      }
    },
  );

  test('of a path in a .pawl whose folder does not exist both are made; below a file the call is rejected (fan-out 3)', async () => {
    const project = join(freshFolder(), 'new', 'project');
    const call = asked({ models: { a: [reply('of a')] } });
    expect((await call.start({ path: join(project, '.pawl', 'ask.json') })).path).toBe(
      join(project, '.pawl', 'answers.json'),
    );
    const file = join(freshFolder(), 'file');
    writeFileSync(file, '');
    const refused = call.start({ path: join(file, '.pawl', 'ask.json') });
    await expect(refused).rejects.toMatchObject({ code: expect.stringMatching(/STORE_UNAVAILABLE|WRITE_FAILED/) });
    expect(call.calls()).toEqual([1]);
  });

  test('a saver keeps to its file when the host changes its working folder (fan-out 3)', async () => {
    const [home, elsewhere] = [freshFolder(), freshFolder()];
    enter(home);
    const saver = new IncrementalSaver('own.json', prompt, ['a'], false);
    await saver.update('a', snapshotFromPartial('a', { text: 'So', steps: 1 }));
    process.chdir(elsewhere);
    await saver.update('a', snapshotFromPartial('a', { text: 'So far', steps: 2 }));
    await saver.close();
    expect((await loadCheckpoint(join(home, 'own.json')))?.responses[0]).toMatchObject({ text: 'So far' });
    expect([around(join(home, 'x')), around(join(elsewhere, 'x'))]).toEqual([['own.json'], []]);
  });

  test('a checkpoint that is saved once lands where the host was when it asked for that (fan-out 3)', async () => {
    const [home, elsewhere] = [freshFolder(), freshFolder()];
    enter(home);
    const saving = saveCheckpoint('deep/own.json', {
      version: 1,
      prompt,
      timestamp: 0,
      adapterIds: ['a'],
      responses: [],
      verbose: false,
    });
    process.chdir(elsewhere);
    await saving;
    expect(await loadCheckpoint(join(home, 'deep', 'own.json'))).toMatchObject({ prompt });
    expect(around(join(elsewhere, 'x'))).toEqual([]);
  });
});
