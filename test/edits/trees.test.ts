import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyWrites } from '../../src/edits/apply.ts';
import { Overlay } from '../../src/edits/overlay.ts';
import { rewind } from '../../src/edits/undo.ts';
import { newRoot, put, treeOf } from './folder.ts';

/** Few names, so that files and folders meet. */
const name = fc.constantFrom('a', 'b', 'C', 'é', '.x');
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));
const bytes = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 20 }), fc.uint8Array({ maxLength: 20 }));
const tree = fc.array(fc.record({ path, bytes, mode: fc.constantFrom(0o644, 0o600, 0o755, 0o444) }), { maxLength: 8 });
const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const writes = fc.array(fc.record({ path, content: fc.option(text) }), { maxLength: 8 });

/** Puts as many of the files there as fit together. */
function build(files: readonly { path: string; bytes: string | Uint8Array; mode: number }[]): string {
  const root = newRoot();
  for (const each of files) {
    try {
      put(root, each.path, each.bytes, each.mode);
    } catch {
      // A file is where a folder should be, or the other way round.
    }
  }
  return root;
}

const runs = { numRuns: process.env.PAWL_TORTURE === '1' ? 2_000 : 20 };

describe('for any tree and any writes of a model (fan-out 7)', () => {
  test('apply gives exactly what the model saw, and rewind the tree byte for byte as it was', async () => {
    await fc.assert(
      fc.asyncProperty(tree, writes, async (files, proposed) => {
        const root = build(files);
        const before = treeOf(root);
        const overlay = new Overlay(root);
        const expected: { [path: string]: string | undefined } = { ...before };
        for (const { path, content } of proposed) {
          const queueing = content === null ? overlay.delete(path) : overlay.write(path, content);
          const queued = await queueing.catch(() => undefined);
          if (!queued) continue;
          expected[path] =
            content === null ? undefined : `${modeOf(before[path])} ${Buffer.from(content).toString('latin1')}`;
        }
        expect(treeOf(root)).toEqual(before);
        const applied = await applyWrites({ proposedWrites: overlay.writes() }, { root });
        expect(applied.files.map((file) => file.path)).toEqual(overlay.writes().map((write) => write.path));
        expect(filesOf(treeOf(root))).toEqual(filesOf(expected));
        if (applied.files.length > 0) await rewind(root);
        expect(treeOf(root)).toEqual(before);
      }),
      runs,
    );
  }, 300_000);

  test('one edit by another person, of any file that is to be changed, makes apply write nothing at all', async () => {
    await fc.assert(
      fc.asyncProperty(tree, writes, fc.nat(), async (files, proposed, pick) => {
        const root = build(files);
        const overlay = new Overlay(root);
        for (const { path, content } of proposed) {
          await (content === null ? overlay.delete(path) : overlay.write(path, content)).catch(() => {});
        }
        const proposedWrites = overlay.writes();
        fc.pre(proposedWrites.length > 0);
        const { path, base } = proposedWrites[pick % proposedWrites.length] as (typeof proposedWrites)[0];
        if (base !== null && pick % 2 === 0) rmSync(join(root, path));
        else put(root, path, 'edited by somebody else, who is longer than any text here');
        const before = treeOf(root, { withPawl: true });
        await expect(applyWrites({ proposedWrites }, { root })).rejects.toMatchObject({ code: 'WRITE_CONFLICT' });
        expect(treeOf(root, { withPawl: true })).toEqual(before);
      }),
      runs,
    );
  }, 300_000);
});

/** What a new file gets where nobody says otherwise. */
function modeOf(before: string | undefined): string {
  return before?.split(' ')[0] ?? (0o666 & ~process.umask()).toString(8);
}

/** Folders aside: those of new files come with them, and those of deleted ones stay. */
function filesOf(tree: { [path: string]: string | undefined }): { [path: string]: string } {
  const files = Object.entries(tree).filter(([path, what]) => !path.endsWith('/') && what !== undefined);
  return Object.fromEntries(files.map(([path, what]) => [path, what ?? '']));
}
