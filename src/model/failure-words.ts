import { readProperty } from '../values/error-data.ts';

/** Characters of one text that are read, and parts of one error: bounds for a hostile error. */
const TEXT_READ = 2_000;
const PARTS_READ = 8;
/** Texts within texts, as JSON in the message of a JSON. */
const DEPTH_READ = 3;

/** An account that has to be paid, unlocked or extended. Texts are compared as plain words, see `plain`. */
const account = [
  ['credit', 'credits', 'quota', 'quotas', 'billing', 'payment', 'payments', 'arrearage'],
  ['usage limit', 'usage limits', 'spending limit', 'spend limit', 'insufficient balance', 'insufficient funds'],
  ['permission', 'permissions', 'not authorized'],
  ['organization has been disabled', 'account has been disabled', 'account is not active', 'account deactivated'],
  ['model not found', 'model does not exist', 'model not exist', 'model decommissioned', 'has been decommissioned'],
].flat();

/** Words that mean an account only beside one of the others. */
const accountPairs = [
  {
    one: ['api key', 'apikey', 'access token', 'api token'],
    beside: ['not valid', 'invalid', 'expired', 'incorrect', 'revoked', 'disabled', 'missing', 'suspended', 'leaked'],
  },
  {
    one: ['region', 'location', 'country', 'countries', 'territory'],
    beside: ['not supported', 'unsupported', 'not available', 'unavailable', 'not allowed', 'restricted'],
  },
];

/**
 * A limit that its provider lifts by itself, though it may call it a quota. "Too many requests" is not among them: HTTP calls each
 * 429 so, and packages that cannot read the body say it in the place of the provider.
 */
const throttle = ['per minute', 'per second', 'rate limit', 'retry in', 'try again'];

/** A request that its provider refuses for what it is. */
const wrongRequest = [
  ['invalid request', 'invalid argument', 'invalid prompt', 'invalid parameter', 'bad request', 'unprocessable'],
  ['validation error', 'validation exception', 'request too large', 'unsupported value', 'unsupported parameter'],
  ['content policy', 'content filter', 'content management policy'],
].flat();

/** A conversation that is longer than the model takes. */
const tooLong = [
  ['context length exceeded', 'context window', 'maximum context length', 'model context length', 'context limit'],
  [
    'prompt is too long',
    'input is too long',
    'input length and max tokens exceed',
    'exceeds the maximum number of tokens',
  ],
  ['input token count', 'reduce the length of the messages', 'too many input tokens', 'maximum prompt length'],
].flat();

/** Labels of an error that refuse who asks, or what for. They are in `type`, `code` and `status`, not in prose. */
const refusedCaller = ['authentication', 'unauthenticated', 'unauthorized', 'forbidden', 'access denied', 'not found'];

/** What an error says of itself, in its own fields and in the provider's data. */
export interface FailureWords {
  /** The HTTP status, or the number in its place within a stream; undefined = it says none. */
  readonly status: number | undefined;
  /** Its message, type, code and status as plain words. */
  readonly texts: readonly string[];
  /** Its type, code and status as plain words. */
  readonly labels: readonly string[];
}

/**
 * Reads an error and the provider's data in it: `data`, `error`, and the body of a response that the package could not read.
 * What it quotes, as parts of the request, is left out. Never throws.
 */
export function saidBy(error: unknown): FailureWords {
  const parts = partsOf(error);
  const labels: string[] = [];
  const texts: string[] = [];
  let status: number | undefined;
  for (const part of parts) {
    if (typeof part === 'string') texts.push(plain(unquoted(part)));
    else {
      const message = readProperty(part, 'message');
      if (typeof message === 'string') texts.push(plain(unquoted(message)));
      const fields = ['statusCode', 'status', 'code', 'type'].map((name) => readProperty(part, name));
      status ??= fields.map(statusIn).find((each) => each !== undefined);
      labels.push(...fields.filter((each) => typeof each === 'string').map(plain));
    }
  }
  return { status, texts: [...texts, ...labels], labels };
}

/** Returns whether an account, its key, its region or its model has to be changed before any request succeeds. */
export function isAboutAccount({ texts }: FailureWords): boolean {
  return texts.some(
    (text) =>
      hasAny(text, account) || accountPairs.some(({ one, beside }) => hasAny(text, one) && hasAny(text, beside)),
  );
}

/** Returns whether the words are about how often one may ask. */
export function isAboutRate({ texts }: FailureWords): boolean {
  return texts.some((text) => hasAny(text, throttle));
}

/** Returns whether the words say that the request is wrong. */
export function isAboutRequest({ texts }: FailureWords): boolean {
  return texts.some((text) => hasAny(text, wrongRequest));
}

/** Returns whether the words say that the conversation is too long for the model. */
export function isAboutLength({ texts }: FailureWords): boolean {
  return texts.some((text) => hasAny(text, tooLong));
}

/** Returns whether the labels refuse the caller or the model. */
export function isAboutCaller({ labels }: FailureWords): boolean {
  return labels.some((label) => hasAny(label, refusedCaller));
}

function hasAny(text: string, phrases: readonly string[]): boolean {
  return phrases.some((phrase) => text.includes(` ${phrase} `));
}

/** The error, and the objects and texts in it that its provider wrote, outermost first. */
function partsOf(error: unknown): unknown[] {
  const parts: unknown[] = [error];
  for (let i = 0; i < parts.length && parts.length < PARTS_READ; i++) {
    if (typeof parts[i] === 'string') continue;
    for (const key of ['data', 'error']) {
      const found = readProperty(parts[i], key);
      const inner = Array.isArray(found) ? readProperty(found, '0') : found;
      if (typeof inner === 'string' || (typeof inner === 'object' && inner !== null)) parts.push(inner);
    }
  }
  const body = readProperty(error, 'responseBody');
  return typeof body === 'string' && parts.length === 1 ? [error, body] : parts;
}

function statusIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.length < 10 ? Number(value.trim() || Number.NaN) : value;
  return typeof number === 'number' && Number.isInteger(number) && number >= 400 && number < 600 ? number : undefined;
}

/** Lower case, with one space around each word: `insufficient_quota`, `InsufficientQuota` and prose compare alike. */
function plain(text: string): string {
  const words = text.slice(0, TEXT_READ).replace(/([a-z])([A-Z])/g, '$1 $2');
  return ` ${words.toLowerCase().replace(/[^a-z0-9]+/g, ' ')} `;
}

const closing: { readonly [opening: string]: string } = { '"': '"', "'": "'", '`': '`', '“': '”' };
/** In the text of an object, the values of these keys are the provider's words. */
const ownKeys: ReadonlySet<string> = new Set(['message', 'type', 'code', 'status', 'error', 'detail', 'reason']);

/** A text without what is in quotes. Of an object's text, the values under the keys of an error stay. */
function unquoted(whole: string, depth = 0): string {
  const text = whole.slice(0, TEXT_READ);
  // A quote that does not end is looked for once: the search stays linear.
  const endless = new Set<string>();
  let said = '';
  let key = '';
  for (let at = 0; at < text.length; ) {
    const end = endOfQuote(text, at, endless);
    if (end === undefined) said += text[at++];
    else {
      const inner = text.slice(at + 1, end);
      const isKey = /^\s?:/.test(text.slice(end + 1, end + 3));
      if (!isKey) said += ownKeys.has(key) && depth < DEPTH_READ ? ` ${unquoted(inner, depth + 1)} ` : ' ';
      key = isKey ? inner : '';
      at = end + 1;
    }
  }
  return said;
}

/** Where the quote that begins here ends; undefined: none begins. An apostrophe within a word begins and ends none. */
function endOfQuote(text: string, at: number, endless: Set<string>): number | undefined {
  const close = closing[text[at] as string];
  if (close === undefined || endless.has(close) || (close === "'" && isInWord(text[at - 1]))) return undefined;
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === '\\') end++;
    else if (text[end] === close && !(close === "'" && isInWord(text[end + 1]))) return end;
  }
  endless.add(close);
  return undefined;
}

function isInWord(character: string | undefined): boolean {
  return character !== undefined && /[A-Za-z0-9]/.test(character);
}
