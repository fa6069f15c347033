import { readFileSync } from 'node:fs';
import { describe, test } from 'vitest';
import { decodeLine, encodeLine, splitLines } from '../../src/files/lines.ts';
import { Encryption } from '../../src/store/encoding/encryption.ts';
import { type FileStore, fileStore } from '../../src/store/file/index.ts';
import { checkpointStoreContract, type DamageKind } from '../../src/testing/store-contract/store-contract.ts';
import { torture } from '../crash/random.ts';
import { freshDir, journalOf, replaceFile } from '../store/file/folder.ts';
import { codecOf } from './keys.ts';
import { flipped } from './sqlite-encrypted.ts';

const encryption = new Encryption(codecOf());
const dirs = new WeakMap<FileStore, string>();

function open(dir: string): FileStore {
  const store = fileStore({ dir, codec: codecOf(), durability: 'process' });
  dirs.set(store, dir);
  return store;
}

/** Damages an encrypted run the way the contract asks for; all checksums are right. */
function damageEncrypted(dir: string, runId: string, kind: DamageKind): void {
  const path = journalOf(dir, runId);
  const lines = splitLines(readFileSync(path)).map((raw) => {
    const line = decodeLine(raw.bytes);
    if (line?.kind !== 'state' || line.fields.length < 7) return raw.bytes;
    const [leaseAt = '', superseded = '', version = '', revision = '', at = '', count = '', head = '', ...rest] =
      line.fields;
    const newer = () => encryption.open(head, runId, 'head').replace(/"version":\d+/, '"version":999');
    const changed = kind === 'newer' ? encryption.seal(newer(), runId, 'head') : flipped(head);
    const number = kind === 'newer' ? '999' : version;
    return encodeLine('state', [leaseAt, superseded, number, revision, at, count, changed, ...rest]);
  });
  replaceFile(path, Buffer.concat(lines));
}

describe('encrypted file store', () => {
  const cases = checkpointStoreContract<FileStore>({
    create: async () => open(freshDir()),
    reopen: async (store) => open(dirs.get(store) ?? ''),
    damage: async (store, runId, kind) => damageEncrypted(dirs.get(store) ?? '', runId, kind),
    dispose: (store) => store.close(),
  });
  // Each third case, of all parts of the contract; all of them in torture. Without a codec they all run in test/store.
  for (const [i, { title, run }] of cases.entries()) test.skipIf(torture === 1 && i % 3 > 0)(title, run);
});
