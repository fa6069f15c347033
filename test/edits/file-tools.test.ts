import { describe, expect, test } from 'vitest';
import { versionOf } from '../../src/edits/content-version.ts';
import { fileTools } from '../../src/edits/file-tools.ts';
import { Overlay } from '../../src/edits/overlay.ts';
import { newRoot, put, treeOf } from './folder.ts';
import { type Asked, ask } from './recorded.ts';

const five = 'one\ntwo\nthree\nfour\nfive';
const files = { 'a.txt': five, 'src/b.ts': 'b\n' };
const jsonOf = async (overlay: Overlay, asked: Asked) => {
  const output = await ask(overlay, asked);
  expect(output.type).toBe('json');
  return (output as { value: unknown }).value;
};

describe('the file tools of a model (fan-out 7)', () => {
  test('have names, effects and inputs that a model and a restart can rely on', () => {
    const tools = fileTools(new Overlay('/nowhere'));
    expect(tools.map(({ name, effect }) => [name, effect])).toEqual([
      ['list_files', 'read'],
      ['read_file', 'read'],
      ['write_file', 'read'],
      ['delete_file', 'read'],
    ]);
    for (const { input } of tools)
      expect(input.jsonSchema).toMatchObject({ type: 'object', additionalProperties: false });
  });

  test('answer a write and a deletion with words: queued, and applied when this answer is chosen', async () => {
    const root = newRoot(files);
    const before = treeOf(root, { withPawl: true });
    const overlay = new Overlay(root);
    const note = expect.stringContaining('Queued, not done yet: it will be applied when this answer is chosen');
    const write = { name: 'write_file', input: { path: './a.txt', content: 'new' } } as const;
    expect(await jsonOf(overlay, write)).toEqual({ path: 'a.txt', change: 1, base: versionOf(five), note });
    const deletion = { name: 'delete_file', input: { path: 'src/b.ts' } } as const;
    expect(await jsonOf(overlay, deletion)).toEqual({ path: 'src/b.ts', change: 2, base: versionOf('b\n'), note });
    expect(treeOf(root, { withPawl: true })).toEqual(before);
  });

  test('say when there is nothing to change', async () => {
    const overlay = new Overlay(newRoot(files));
    const same = { name: 'write_file', input: { path: 'a.txt', content: five } } as const;
    expect(await jsonOf(overlay, same)).toMatchObject({
      note: 'The file is like this anyway: there is nothing to change.',
    });
    await ask(overlay, { name: 'write_file', input: { path: 'n', content: '' } });
    const deletion = { name: 'delete_file', input: { path: 'n' } } as const;
    expect(await jsonOf(overlay, deletion)).toMatchObject({ note: expect.stringContaining('that change is dropped') });
    expect(overlay.writes()).toEqual([]);
  });

  test.for([
    [{}, five],
    [{ offset: 2 }, 'two\nthree\nfour\nfive'],
    [{ limit: 2 }, 'one\ntwo\n'],
    [{ offset: 4, limit: 9 }, 'four\nfive'],
    [{ offset: 6 }, ''],
  ] as const)('read the lines that are asked for: %j', async ([range, content]) => {
    const overlay = new Overlay(newRoot(files));
    const read = { name: 'read_file', input: { path: 'a.txt', ...range } } as const;
    expect(await jsonOf(overlay, read)).toEqual({ path: 'a.txt', version: versionOf(five), lines: 5, content });
  });

  test('list the root, or one folder, and say when there is more', async () => {
    const root = newRoot(files);
    const overlay = new Overlay(root);
    const all = ['a.txt', 'src/', 'src/b.ts'];
    expect(await jsonOf(overlay, { name: 'list_files', input: {} })).toEqual({ entries: all });
    expect(await jsonOf(overlay, { name: 'list_files', input: { folder: 'src' } })).toEqual({ entries: ['src/b.ts'] });
    for (let i = 0; i < 1_001; i++) put(root, `many/${i}`, '');
    const note = 'There is more than that: list one of the folders.';
    expect(await jsonOf(overlay, { name: 'list_files', input: {} })).toMatchObject({ note });
  });

  test('answer what is refused as an error that the model reads', async () => {
    const overlay = new Overlay(newRoot(files));
    const refused: [Asked, string][] = [
      [{ name: 'read_file', input: { path: '../x' } }, '"../x" is refused: it leads out of the root'],
      [{ name: 'read_file', input: { path: 'none' } }, 'there is no file "none"'],
      [{ name: 'write_file', input: { path: '.git/hooks/x', content: '' } }, 'is not accessible to models'],
      [{ name: 'delete_file', input: { path: 'none' } }, 'there is no file "none"'],
      [{ name: 'list_files', input: { folder: '/' } }, 'it is absolute'],
      [{ name: 'write_file', input: { path: 'a.txt' } }, 'invalid input for tool "write_file"'],
      [{ name: 'read_file', input: { path: 'a.txt', offset: 0 } }, 'invalid input for tool "read_file"'],
    ];
    for (const [asked, words] of refused) {
      expect(await ask(overlay, asked)).toEqual({ type: 'error-text', value: expect.stringContaining(words) });
    }
    expect(overlay.writes()).toEqual([]);
  });
});
