import { crc32 } from 'node:zlib';
import { Encryption } from '../../src/store/encoding/encryption.ts';
import type { DamageKind } from '../../src/testing/store-contract/store-contract.ts';
import { sql } from '../store/sqlite/files.ts';
import { codecOf } from './keys.ts';

const encryption = new Encryption(codecOf());

/** Damages an encrypted run the way the contract asks for; all checksums are right. */
export function damageEncrypted(path: string, runId: string, kind: DamageKind): void {
  const [row] = sql(path, 'SELECT h.* FROM heads h JOIN runs r ON r.no = h.no WHERE r.run_id = ?', runId);
  if (!row) throw new Error(`no run ${runId}`);
  const stored = String(row.head);
  const text = encryption.open(stored, runId, 'head');
  const changed = text.replace(/"version":\d+/, '"version":999');
  const head = kind === 'newer' ? encryption.seal(changed, runId, 'head') : flipped(stored);
  const version = kind === 'newer' ? 999 : Number(row.version);
  const columns = `${row.generation},${version},${row.revision},${row.updated_at},${row.message_count}`;
  const values = [head, version, crc32(head, crc32(columns)), Number(row.no)];
  sql(path, 'UPDATE heads SET head = ?, version = ?, checksum = ? WHERE no = ?', ...values);
}

/** Another letter in the middle of the ciphertext. */
export function flipped(sealed: string): string {
  const at = Math.floor(sealed.length / 2);
  return `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`;
}
