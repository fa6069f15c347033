import type { KeyObject } from 'node:crypto';
import { nodeCrypto } from '../values/digest.ts';
import { NOT_OPENED, UNKNOWN_KEY } from '../values/error-codes.ts';
import { CheckpointCorruptError, KeyMismatchError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import { checkKeys, checkWord, type KnownKeys } from '../values/known-options.ts';
import type { Codec, Place } from './port.ts';

export interface EncryptOptions {
  /**
   * Keys by id, each of 32 random bytes: the bytes, or their base64 (44 characters, padded). `openssl rand -base64 32` makes
   * one. An id has up to 64 letters, digits, `-` and `_`. The store keeps ids unencrypted.
   * @example keys: { k1: process.env.PAWL_KEY ?? '' }
   */
  readonly keys: { readonly [id: string]: Uint8Array | string };
  /**
   * The id of the key that encrypts new texts. The other keys only decrypt older texts.
   * @example current: 'k1'
   */
  readonly current: string;
  /**
   * How texts that were stored unencrypted are handled: refused with KEY_MISMATCH, or read.
   * @default 'refuse'
   */
  readonly plain?: 'refuse' | 'read';
}

const optionKeys: KnownKeys<EncryptOptions> = {
  keys: true,
  current: true,
  plain: true,
};

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
/** The iv length that GCM is specified for; GCM hashes longer ones. */
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** The first form of an encrypted text: `<form>.<key id>.<base64 of iv, ciphertext, tag>`. */
const FORM = 'gcm1';

const isKeyId = (id: string) => /^[\w-]{1,64}$/.test(id);

/**
 * A codec that encrypts what a store keeps: AES-256 in GCM mode, a random 96-bit iv for each text, the key's id
 * unencrypted. Run id and part are authenticated, so an encrypted text that is moved to another place is refused.
 *
 * To rotate keys, add a new key and make it `current`. Remove the old key when no older run and no older outcome is left.
 *
 * @throws {TypeError} for an unknown option, a key that is not 32 bytes or not random (a passphrase, a pattern, zeros), an
 * invalid id, or a `current` that is not among the keys. The message never contains the key
 * const codec = encrypt({ keys: { '2026-11': process.env.RUNS_KEY ?? '' }, current: '2026-11' })
 * const store = sqliteStore({ path: 'runs.db', codec })
 */
export function encrypt(options: EncryptOptions): Codec {
  checkKeys(options, optionKeys, { of: 'encrypt' });
  checkWord('encrypt: plain', options.plain, ['refuse', 'read']);
  const { keys, current, plain = 'refuse' } = options;
  if (!isObject(keys)) throw new TypeError('encrypt: keys must be an object: { id: key }');
  const known = new Map(Object.entries(keys).map(([id, key]) => [id, keyOf(id, key)] as const));
  const own = known.get(current);
  if (!own) throw new TypeError(`encrypt: the current key ${JSON.stringify(current)} is not among the keys`);
  const hashKeys = hashKeysOf(known, current);
  return {
    plain,
    seal: (text, place) => `${FORM}.${current}.${sealed(text, own, boundTo(current, place))}`,
    open: (text, place) => {
      const [form, id = '', bytes = ''] = text.split('.');
      if (form !== FORM || !isKeyId(id)) throw new CheckpointCorruptError(`${nameOf(place)} is not an encrypted text`);
      const key = known.get(id);
      if (key) return opened(bytes, key, { aad: boundTo(id, place), place });
      throw new KeyMismatchError(`${nameOf(place)} is encrypted with the key ${id}, ${UNKNOWN_KEY}`);
    },
    lookups: (text, what) => hashKeys.map((key) => hashed(key, [what, text])),
  };
}

/** The current key first. */
function hashKeysOf(keys: ReadonlyMap<string, KeyObject>, current: string): readonly Buffer[] {
  const ids = [current, ...[...keys.keys()].filter((id) => id !== current)];
  return ids.map((id) => {
    const hmac = nodeCrypto().createHmac('sha256', keys.get(id) as KeyObject);
    return hmac.update('pawl lookup 1').digest();
  });
}

/** HMAC-SHA-256 with a key that is derived from the encryption key, so that one key serves one purpose. */
function hashed(key: Buffer, texts: readonly string[]): string {
  return nodeCrypto().createHmac('sha256', key).update(JSON.stringify(texts)).digest('base64url');
}

const HOW_TO_MAKE_ONE = `make one with: node -e "console.log(require('crypto').randomBytes(32).toString('base64'))"`;

/** Errors name the key's id and never contain the key itself. */
function keyOf(id: string, key: Uint8Array | string): KeyObject {
  if (!isKeyId(id)) throw new TypeError(`encrypt: ${JSON.stringify(id)} is not a valid key id`);
  const bytes = bytesOf(key);
  if (!bytes) {
    const what = `the key ${id} must be ${KEY_BYTES} random bytes, or their base64 (44 characters, padded)`;
    throw new TypeError(`encrypt: ${what}; ${HOW_TO_MAKE_ONE}`);
  }
  const fault = faultOf(bytes);
  if (fault) throw new TypeError(`encrypt: the key ${id} is not random: ${fault}; ${HOW_TO_MAKE_ONE}`);
  return nodeCrypto().createSecretKey(bytes);
}

/** Node decodes base64 leniently. Text that does not encode back to itself was cut, mistyped, or never base64. */
function bytesOf(key: unknown): Uint8Array | undefined {
  if (typeof key !== 'string') return key instanceof Uint8Array && key.length === KEY_BYTES ? key : undefined;
  const bytes = Buffer.from(key, 'base64');
  return bytes.length === KEY_BYTES && bytes.toString('base64') === key ? bytes : undefined;
}

/** A key with fewer distinct bytes is not random: 32 random bytes have 30 on average, and fewer than 16 once in 10^16. */
const MIN_DISTINCT = 16;

/**
 * Returns why these bytes cannot come from a random source, or undefined if they can. It refuses about one in 2 * 10^13
 * random keys, nearly all of them because every byte happens to be printable.
 */
function faultOf(key: Uint8Array): string | undefined {
  if (key.every(isTextByte)) return 'it is text, such as a passphrase';
  const distinct = new Set(key).size;
  if (distinct === 1) return key[0] === 0 ? 'it is all zeros' : 'all of its bytes are the same';
  if (distinct < MIN_DISTINCT) return `it has only ${distinct} different bytes`;
  const half = KEY_BYTES / 2;
  if (key.subarray(half).every((byte, i) => byte === key[i])) return 'its second half repeats the first';
  const step = distanceAt(key, 1);
  return key.every((_, i) => i === 0 || distanceAt(key, i) === step) ? 'its bytes count up or down' : undefined;
}

/** The difference between a byte and the one before it, modulo 256. */
function distanceAt(key: Uint8Array, i: number): number {
  return ((key[i] ?? 0) - (key[i - 1] ?? 0)) & 0xff;
}

/** Printable ASCII, a tab, or a line end. */
function isTextByte(byte: number): boolean {
  return (byte >= 0x20 && byte <= 0x7e) || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

/** The additional data that GCM authenticates: an encrypted text cannot be decrypted at another place. */
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
    throw new CheckpointCorruptError(`${nameOf(place)} is damaged, or belongs to another place ${NOT_OPENED}`, {
      cause,
    });
  }
}

const nameOf = ({ runId, part }: Place) => `the ${part} of run ${runId}`;
