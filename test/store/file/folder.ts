import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { decodeLine, encodeLine, splitLines } from '../../../src/files/lines.ts';
import { safeName } from '../../../src/files/safe-name.ts';
import type { DamageKind } from '../../../src/testing/store-contract/store-contract.ts';

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** A folder for a store, in one of its own that goes when the tests of the file are over. */
export function freshDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-files-'));
  folders.push(folder);
  return join(folder, 'runs.store');
}

export function journalOf(dir: string, runId: string): string {
  return join(dir, 'runs', safeName(runId), 'journal');
}

/** Puts other bytes in the place of a file, as another file: a store that has it open must notice. */
export function replaceFile(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.other`, bytes);
  renameSync(`${path}.other`, path);
}

/** All files below a folder, by their paths from there. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !statSync(join(folder, path)).isDirectory())
    .sort();
}

/** How often a text stands in the raw bytes of all files below a folder. */
export function countIn(folder: string, text: string): number {
  let count = 0;
  for (const file of filesBelow(folder)) {
    const bytes = readFileSync(join(folder, file));
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) count += 1;
  }
  return count;
}

/** Damages a stored run the way the contract asks for. */
export function damageRun(dir: string, runId: string, kind: DamageKind): void {
  const path = journalOf(dir, runId);
  const bytes = readFileSync(path);
  if (kind === 'corrupt') {
    const at = bytes.lastIndexOf('"iteration"') + 3;
    bytes[at] = (bytes[at] ?? 0) ^ 0x20;
    replaceFile(path, bytes);
    return;
  }
  // What a newer version would have written: its own number, and a checksum that is right.
  const lines = splitLines(bytes).map((raw) => {
    const line = decodeLine(raw.bytes);
    if (line?.kind !== 'state') return raw.bytes;
    const [leaseAt = '', superseded = '', , ...rest] = line.fields;
    const fields = [leaseAt, superseded, '999', ...rest].map((field) =>
      field.replace(/"version":\d+/, '"version":999'),
    );
    return encodeLine('state', fields);
  });
  replaceFile(path, Buffer.concat(lines));
}
