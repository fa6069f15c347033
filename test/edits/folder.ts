import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A new folder with these files in it, removed after the test. */
export function newRoot(files: { readonly [path: string]: string | Uint8Array } = {}): string {
  const root = mkdtempSync(join(tmpdir(), 'pawl-writes-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) put(root, path, content);
  return root;
}

/** Puts a file there, with the folders above it. */
export function put(root: string, path: string, content: string | Uint8Array, mode?: number): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
  if (mode !== undefined) chmodSync(join(root, path), mode);
}

/** All that is below a folder: bytes and modes, empty folders and links. What Pawl keeps there itself is left out. */
export function treeOf(root: string, { withPawl = false } = {}): { [path: string]: string } {
  const tree: { [path: string]: string } = {};
  for (const path of readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!withPawl && /^\.pawl(\/|$)/.test(path)) continue;
    const at = join(root, path);
    const stats = lstatSync(at);
    const mode = (stats.mode & 0o7777).toString(8);
    if (stats.isDirectory()) tree[`${path}/`] = mode;
    else if (stats.isSymbolicLink()) tree[path] = `-> ${readlinkSync(at)}`;
    else tree[path] = `${mode} ${readFileSync(at, 'latin1')}`;
  }
  return tree;
}
