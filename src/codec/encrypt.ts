import type { KeyObject } from 'node:crypto';
import { nodeCrypto } from '../run/digest.ts';
import { CheckpointCorruptError, KeyMismatchError } from '../run/errors.ts';
import type { Codec, Place } from './port.ts';

export interface EncryptOptions {
  /**
   * Keys by id, each of 32 random bytes: the bytes, or their base64. Ids are of letters, digits, `-` and `_`, up to 64 of
   * them; they stand in the store for everyone to read.
   */
  readonly keys: { readonly [id: string]: Uint8Array | string };
  /** The id of the key that new texts are sealed with. The others are for texts from before. */
  readonly current: string;
  /** What becomes of texts that were stored unencrypted: refused with KEY_MISMATCH (the default), or read. */
  readonly plain?: 'refuse' | 'read';
}

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** What GCM is made for; longer ones would be hashed down to it. */
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** The first form of a sealed text: `<form>.<key id>.<base64 of iv, ciphertext, tag>`. */
const FORM = 'gcm1';

const isKeyId = (id: string) => /^[\w-]{1,64}$/.test(id);

/**
 * A codec that encrypts what a store keeps: AES-256 in GCM mode, a random 96-bit iv for each text, the key's id in the
 * clear. Run id and part are authenticated, so that a text opens in its own place only.
 *
 * To take a new key, add it and make it `current`; take the old one away when no run and no kept outcome from before is left.
 *
 * @throws {TypeError} for a key that is not 32 bytes, an id that cannot be one, or a `current` that is not among the keys
 * @example
 * const codec = encrypt({ keys: { '2026-11': process.env.RUNS_KEY ?? '' }, current: '2026-11' })
 * const store = sqliteStore({ path: 'runs.db', codec })
 */
export function encrypt({ keys, current, plain = 'refuse' }: EncryptOptions): Codec {
  const known = new Map(Object.entries(keys).map(([id, key]) => [id, keyOf(id, key)] as const));
  const own = known.get(current);
  if (!own) throw new TypeError(`encrypt: the current key ${JSON.stringify(current)} is not among the keys`);
  return {
    plain,
    seal: (text, place) => `${FORM}.${current}.${sealed(text, own, boundTo(current, place))}`,
    open: (text, place) => {
      const [form, id = '', bytes = ''] = text.split('.');
      if (form !== FORM || !isKeyId(id)) throw new CheckpointCorruptError(`${nameOf(place)} is no encrypted text`);
      const key = known.get(id);
      if (key) return opened(bytes, key, { aad: boundTo(id, place), place });
      throw new KeyMismatchError(`${nameOf(place)} is encrypted with the key ${id}, which is not among the keys`);
    },
  };
}

/** The error says which key it was, and nothing of the key itself. */
function keyOf(id: string, key: Uint8Array | string): KeyObject {
  if (!isKeyId(id)) throw new TypeError(`encrypt: ${JSON.stringify(id)} cannot be a key's id`);
  const bytes = typeof key === 'string' ? Buffer.from(key, 'base64') : key;
  if (!(bytes instanceof Uint8Array) || bytes.length !== KEY_BYTES) {
    throw new TypeError(`encrypt: the key ${id} must be ${KEY_BYTES} bytes, or their base64`);
  }
  return nodeCrypto().createSecretKey(bytes);
}

/** What is authenticated beside the text: moved to another place, it does not open. */
function boundTo(id: string, { runId, part }: Place): Buffer {
  return Buffer.from(JSON.stringify([FORM, id, runId, part]));
}

function sealed(text: string, key: KeyObject, aad: Buffer): string {
  const iv = nodeCrypto().randomBytes(IV_BYTES);
  const cipher = nodeCrypto().createCipheriv(CIPHER, key, iv);
  cipher.setAAD(aad);
  const body = cipher.update(text, 'utf8');
  return Buffer.concat([iv, body, cipher.final(), cipher.getAuthTag()]).toString('base64');
}

function opened(text: string, key: KeyObject, { aad, place }: { aad: Buffer; place: Place }): string {
  const bytes = Buffer.from(text, 'base64');
  try {
    const options = { authTagLength: TAG_BYTES };
    const decipher = nodeCrypto().createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), options);
    decipher.setAAD(aad);
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const body = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
    return Buffer.concat([body, decipher.final()]).toString('utf8');
  } catch (cause) {
    throw new CheckpointCorruptError(`${nameOf(place)} is damaged, or was stored for something else`, { cause });
  }
}

const nameOf = ({ runId, part }: Place) => `the ${part} of run ${runId}`;
