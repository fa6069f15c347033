import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fanOut } from 'pawl/fan-out';
import { callTool, fail, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, it } from 'vitest';
import { newOwner } from '../../src/store/owner.ts';
import type { FanOutAnswer, FanOutList, FanOutView } from '../../src/studio/fan-out-wire.ts';
import { lineDiff } from '../../src/studio/fan-outs/line-diff.ts';
import { freshFolder } from '../fan-out/fresh-folder.ts';
import { studioHost } from './studio-host.ts';

/** A folder with a fan-out of two models: one changes a file and a hook, the other fails. */
async function answered() {
  const root = freshFolder();
  writeFileSync(join(root, 'greeting.txt'), 'Hello!\nBye!\n');
  writeFileSync(join(root, 'run.sh'), 'true\n');
  chmodSync(join(root, 'run.sh'), 0o755);
  const editor = scriptedModel([
    callTool('read_file', { path: 'greeting.txt' }),
    callTool('write_file', { path: 'greeting.txt', content: 'Hello, world!\nBye!\n' }),
    callTool('read_file', { path: 'run.sh' }),
    callTool('write_file', { path: 'run.sh', content: 'false\n' }),
    reply('It greets the world.'),
  ]);
  const models = { editor, broken: scriptedModel([fail(Object.assign(new Error('no'), { statusCode: 400 }))]) };
  await fanOut({ prompt: 'Greet better.', models, root, path: join(root, '.pawl', 'ask.json') });
  return root;
}

const hostOn = (root: string, apply = true) =>
  studioHost({ studio: { fanOuts: join(root, '.pawl'), ...(apply ? { apply: { root } } : {}) } });
type Host = ReturnType<typeof hostOn>;

const listOf = async ({ ask }: Host) => (await ask('/fan-outs')).body as unknown as FanOutList;
async function viewOf(host: Host): Promise<FanOutView> {
  const [line] = (await listOf(host)).items;
  return (await host.ask(`/fan-outs/${line?.id}`)).body as unknown as FanOutView;
}
const editorOf = ({ answers }: FanOutView) => answers.find(({ modelId }) => modelId === 'editor') as FanOutAnswer;

describe('the fan-outs of a Studio', () => {
  it('are those below its folder, the newest first; other files are none (studio 10)', async () => {
    const root = await answered();
    writeFileSync(join(root, '.pawl', 'settings.json'), '{"a":1}');
    mkdirSync(join(root, '.pawl', 'old'));
    const damaged = join(root, '.pawl', 'old', 'answers.json');
    writeFileSync(damaged, 'not JSON');
    // The clock of a file system may be coarser than the time between two writes.
    utimesSync(damaged, new Date(), new Date(Date.now() + 60_000));
    const { items } = await listOf(hostOn(root));
    expect(items.map(({ name, state, code }) => [name, state, code])).toEqual([
      ['old/answers.json', 'bad', 'CHECKPOINT_CORRUPT'],
      ['answers.json', 'ok', undefined],
    ]);
    expect(items[1]).toMatchObject({ prompt: 'Greet better.', models: 2, answered: 1 });
  });

  it('run while a live process has their lock, and not once that process was killed (studio 10)', async () => {
    const root = await answered();
    const file = join(root, '.pawl', 'answers.json');
    const checkpoint = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...checkpoint, adapter_ids: ['editor', 'broken', 'slow'] }));
    const host = hostOn(root);
    const stateOf = async (owner: string) => {
      writeFileSync(`${file}.lock`, owner);
      const view = await viewOf(host);
      return [(await listOf(host)).items[0]?.state, view.state, view.answers.at(-1)?.state];
    };
    const owner = newOwner();
    expect(await stateOf(owner)).toEqual(['run', 'run', 'run']);
    expect(await stateOf(owner.split('|').with(3, '99999999').join('|'))).toEqual(['idle', 'idle', 'idle']);
    expect(await stateOf('')).toEqual(['idle', 'idle', 'idle']);
  });

  it('show each model, its answer or its error, and the changes against the files of the folder (studio 10)', async () => {
    const { answers } = await viewOf(hostOn(await answered()));
    expect(answers.map(({ modelId, state }) => [modelId, state])).toEqual([
      ['editor', 'ok'],
      ['broken', 'fail'],
    ]);
    expect(answers[0]).toMatchObject({ text: 'It greets the world.', steps: 5 });
    expect(answers[1]?.error).toContain('no');
    const [greeting, script] = answers[0]?.files ?? [];
    expect(greeting).toMatchObject({ path: 'greeting.txt', change: 'changed', added: 1, removed: 1, more: 0 });
    expect(greeting?.lines.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'at @@ -1,2 +1,2 @@',
      'del Hello!',
      'add Hello, world!',
      'same Bye!',
    ]);
    expect(script).toMatchObject({ path: 'run.sh', warning: 'the file is executable' });
  });

  it('are applied as they were shown, and taken back (studio 10)', async () => {
    const root = await answered();
    const host = hostOn(root);
    const view = await viewOf(host);
    const path = `/fan-outs/${view.id}/apply`;
    const wrong = await host.ask(path, { method: 'POST', body: { modelId: 'editor', digest: 'other' } });
    expect(wrong).toMatchObject({ status: 409, body: { code: 'WRITE_CONFLICT' } });
    const { digest = '' } = editorOf(view);
    const done = await host.ask(path, { method: 'POST', body: { modelId: 'editor', digest } });
    expect(done).toMatchObject({ status: 200, body: { files: [{ path: 'greeting.txt' }, { path: 'run.sh' }] } });
    expect(readFileSync(join(root, 'greeting.txt'), 'utf8')).toBe('Hello, world!\nBye!\n');
    expect(await host.ask(path, { method: 'POST', body: { undo: true } })).toMatchObject({ status: 200 });
    expect(readFileSync(join(root, 'greeting.txt'), 'utf8')).toBe('Hello!\nBye!\n');
  });

  it('are not taken back by a request that names another fan-out (studio 10, 31)', async () => {
    const root = await answered();
    const host = hostOn(root);
    const view = await viewOf(host);
    const body = { modelId: 'editor', digest: editorOf(view).digest ?? '' };
    expect(await host.ask(`/fan-outs/${view.id}/apply`, { method: 'POST', body })).toMatchObject({ status: 200 });
    const undone = await host.ask('/fan-outs/unknown/apply', { method: 'POST', body: { undo: true } });
    expect(undone).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
    expect(readFileSync(join(root, 'greeting.txt'), 'utf8')).toBe('Hello, world!\nBye!\n');
  });

  it('are not taken back by a fan-out of which nothing was applied here (studio 10, 31)', async () => {
    const root = await answered();
    const view = await viewOf(hostOn(root));
    const body = { modelId: 'editor', digest: editorOf(view).digest ?? '' };
    expect(await hostOn(root).ask(`/fan-outs/${view.id}/apply`, { method: 'POST', body })).toMatchObject({
      status: 200,
    });
    const undone = await hostOn(root).ask(`/fan-outs/${view.id}/apply`, { method: 'POST', body: { undo: true } });
    expect(undone).toMatchObject({ status: 409, body: { code: 'WRITE_CONFLICT' } });
    expect(readFileSync(join(root, 'greeting.txt'), 'utf8')).toBe('Hello, world!\nBye!\n');
  });

  it('are not applied over a file that has changed since the model read it (studio 10)', async () => {
    const root = await answered();
    const host = hostOn(root);
    const view = await viewOf(host);
    writeFileSync(join(root, 'greeting.txt'), 'Mine.\n');
    const body = { modelId: 'editor', digest: editorOf(view).digest ?? '' };
    const answer = await host.ask(`/fan-outs/${view.id}/apply`, { method: 'POST', body });
    expect(answer).toMatchObject({ status: 409, body: { code: 'WRITE_CONFLICT' } });
    expect(readFileSync(join(root, 'greeting.txt'), 'utf8')).toBe('Mine.\n');
    expect(readFileSync(join(root, 'run.sh'), 'utf8')).toBe('true\n');
  });

  it('have no route that applies them without the option, and are shown without the files then (studio 25)', async () => {
    const host = hostOn(await answered(), false);
    const view = await viewOf(host);
    expect(editorOf(view).files[0]).toMatchObject({ change: 'created', added: 2, removed: 0 });
    const answer = await host.ask(`/fan-outs/${view.id}/apply`, { method: 'POST', body: { undo: true } });
    expect(answer.status).toBe(404);
  });

  it('are for readers of all runs, and no id leads out of the folder (studio 10, 18)', async () => {
    const host = hostOn(await answered());
    const { id } = await viewOf(host);
    expect((await host.ask('/fan-outs', { as: 'ada' })).body).toMatchObject({ items: [] });
    expect((await host.ask(`/fan-outs/${id}`, { as: 'ada' })).status).toBe(404);
    for (const bad of ['..%2Fask.json', '%2Fetc%2Fpasswd', 'answers.json', 'x'])
      expect((await host.ask(`/fan-outs/${bad}`)).status).toBe(404);
  });

  it('show a proposal that leads out of the folder with the reason why it is not applied (studio 10)', async () => {
    const root = await answered();
    const file = join(root, '.pawl', 'answers.json');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('greeting.txt', '../outside.txt'));
    const host = hostOn(root);
    const view = await viewOf(host);
    expect(editorOf(view).trouble?.code).toBe('WRITE_OUTSIDE_ROOT');
    const body = { modelId: 'editor', digest: editorOf(view).digest ?? '' };
    const answer = await host.ask(`/fan-outs/${view.id}/apply`, { method: 'POST', body });
    expect(answer).toMatchObject({ status: 422, body: { code: 'WRITE_OUTSIDE_ROOT' } });
  });
});

describe('the record of who applied the changes of a fan-out (studio 25)', () => {
  const logIn = (root: string) => join(root, '.pawl', 'answers.json.applied.jsonl');

  /** Sends an action for the editor's changes. */
  async function act(host: Host, body: object = {}) {
    const view = await viewOf(host);
    const wanted = { modelId: 'editor', digest: editorOf(view).digest ?? '' };
    return host.ask(`/fan-outs/${view.id}/apply`, { method: 'POST', body: 'undo' in body ? body : wanted });
  }
  const actionsOn = async (host: Host) => (await viewOf(host)).actions;

  it('has the person, the model and the time of each action, also in a Studio that was started later', async () => {
    const root = await answered();
    const host = hostOn(root);
    expect(await actionsOn(host)).toEqual([]);
    await act(host);
    await act(host, { undo: true });
    writeFileSync(join(root, 'greeting.txt'), 'Mine.\n');
    expect((await act(host)).status).toBe(409);
    const known = { modelId: 'editor', by: { id: 'ada' }, at: expect.any(Number) };
    const actions = [
      { ...known, action: 'apply', end: 'refused', files: 0 },
      { ...known, action: 'take-back', end: 'done', files: 2 },
      { ...known, action: 'apply', end: 'done', files: 2 },
    ];
    expect(await actionsOn(host)).toEqual(actions);
    expect(await actionsOn(hostOn(root, false))).toEqual(actions);
    expect(statSync(logIn(root)).mode & 0o077).toBe(0);
  });

  it('has an action whose process was killed in the middle, and stays whole after a line that was cut', async () => {
    const root = await answered();
    await act(hostOn(root));
    const [begun = ''] = readFileSync(logIn(root), 'utf8').split('\n');
    writeFileSync(logIn(root), `${begun}\n${begun.slice(0, 20)}`);
    expect(await actionsOn(hostOn(root))).toEqual([
      { action: 'apply', modelId: 'editor', by: { id: 'ada' }, at: expect.any(Number) },
    ]);
    expect((await act(hostOn(root))).status).toBe(409);
    expect((await actionsOn(hostOn(root))).map(({ end }) => end)).toEqual(['refused', undefined]);
  });

  it('has the first action of a file whose predecessor was set aside with a line that was cut', async () => {
    const root = await answered();
    await act(hostOn(root));
    const [begun = ''] = readFileSync(logIn(root), 'utf8').split('\n');
    writeFileSync(`${logIn(root)}.1`, begun.slice(0, 20));
    expect((await actionsOn(hostOn(root))).map(({ end }) => end)).toEqual(['done']);
  });

  it('comes before the change: where it cannot be written, nothing is applied, and no link is followed', async () => {
    const root = await answered();
    const outside = join(freshFolder(), 'outside');
    writeFileSync(outside, '');
    symlinkSync(outside, logIn(root));
    expect((await act(hostOn(root))).body).toMatchObject({ status: 500, code: 'WRITE_FAILED' });
    expect(readFileSync(outside, 'utf8')).toBe('');
    expect(readFileSync(join(root, 'greeting.txt'), 'utf8')).toBe('Hello!\nBye!\n');
    expect(await actionsOn(hostOn(root))).toEqual([]);
  });

  it('is bounded: a long file is set aside, and the view has the last 20', async () => {
    const root = await answered();
    const line = (at: number) => `${JSON.stringify({ v: 1, id: `a${at}`, at, action: 'apply', modelId: 'editor' })}\n`;
    const lines = Array.from({ length: 20_000 }, (_, at) => line(at)).join('');
    writeFileSync(logIn(root), lines);
    expect((await actionsOn(hostOn(root))).map(({ at }) => at)).toEqual(
      Array.from({ length: 20 }, (_, at) => 19_999 - at),
    );
    await act(hostOn(root));
    expect(readFileSync(`${logIn(root)}.1`, 'utf8')).toBe(lines);
    expect(readFileSync(logIn(root), 'utf8').split('\n')).toHaveLength(3);
    const [last, before] = await actionsOn(hostOn(root));
    expect([last?.end, before?.at]).toEqual(['done', 19_999]);
  });
});

describe('a diff of two texts by lines', () => {
  const shown = (before: string, after: string) =>
    lineDiff(before, after).lines.map(({ kind, text }) => ({ same: ' ', add: '+', del: '-', at: '' })[kind] + text);

  it('has three lines around each change, and a head for each part (studio 10)', () => {
    const lines = Array.from({ length: 20 }, (_, at) => `line ${at + 1}`);
    const changed = lines.with(1, 'two').toSpliced(15, 1);
    expect(shown(lines.join('\n'), changed.join('\n'))).toEqual([
      '@@ -1,5 +1,5 @@',
      ' line 1',
      '-line 2',
      '+two',
      ' line 3',
      ' line 4',
      ' line 5',
      '@@ -13,7 +13,6 @@',
      ' line 13',
      ' line 14',
      ' line 15',
      '-line 16',
      ' line 17',
      ' line 18',
      ' line 19',
    ]);
  });

  it('is empty for equal texts, and whole for a new and for a deleted file (studio 10)', () => {
    expect(lineDiff('a\nb\n', 'a\nb\n')).toEqual({ added: 0, removed: 0, lines: [], more: 0 });
    expect(shown('', 'a\nb\n')).toEqual(['@@ -1,0 +1,2 @@', '+a', '+b']);
    expect(shown('a\nb\n', '')).toEqual(['@@ -1,2 +1,0 @@', '-a', '-b']);
  });

  it('gives both texts back from its lines, for any texts (studio 10)', () => {
    let seed = 3;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * below);
    };
    for (let round = 0; round < 200; round++) {
      const text = () => Array.from({ length: random(5) }, () => 'abc'[random(3)]);
      const [before, after] = [text(), text()];
      const { lines } = lineDiff(before.join('\n'), after.join('\n'));
      const of = (kind: string) =>
        lines.filter((line) => line.kind === 'same' || line.kind === kind).map((line) => line.text);
      if (before.join() === after.join()) continue;
      expect([of('del'), of('add')]).toEqual([before, after]);
    }
  });

  it('of long texts ends at once, and says how much is not shown (studio 27)', () => {
    const many = (word: string) => Array.from({ length: 30_000 }, (_, at) => `${word} ${at}`).join('\n');
    const { added, removed, lines, more } = lineDiff(many('old'), many('new'));
    expect([added, removed, lines.length, more]).toEqual([30_000, 30_000, 1_000, 59_001]);
  });
});
