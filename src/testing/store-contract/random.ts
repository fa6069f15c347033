import type { RunCheckpoint } from '../../record/checkpoint.ts';
import type { JsonValue } from '../../values/json.ts';
import type { Message } from '../../values/message.ts';
import { fullRecord, sampleRecord } from './records.ts';

/** A source of random choices that a seed reproduces. */
export interface Random {
  /** A whole number from 0 up to, but not including, `bound`. */
  below(bound: number): number;
  pick<T>(values: readonly T[]): T;
  shuffled<T>(values: readonly T[]): T[];
}

/** Returns a random number generator with a seed (mulberry32): small, and good enough to choose test cases. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number) => Math.floor(next() * bound);
  const shuffled = <T>(values: readonly T[]): T[] => {
    const result = [...values];
    for (let i = result.length - 1; i > 0; i--) {
      const j = below(i + 1);
      [result[i], result[j]] = [result[j] as T, result[i] as T];
    }
    return result;
  };
  return { below, shuffled, pick: (values) => values[below(values.length)] as never };
}

const texts = [
  '',
  'plain',
  '"quoted"\\',
  'a\0b',
  '\ud800',
  '\udfff tail',
  '😀',
  '\u2028\u2029',
  '\r\n\t',
  '__proto__',
  "';--",
  '٣',
];
const keys = ['a', 'b', '', 'constructor', '__proto__', 'toJSON', 'length', '0', 'ключ', 'a.b', '$'];
const numbers = [0, 1, -1, 0.1, 1e21, 5e-324, Number.MAX_SAFE_INTEGER, -1.5e-7];

function randomText(random: Random): string {
  return Array.from({ length: random.below(4) }, () => random.pick(texts)).join('');
}

/** Any JSON, with names that JavaScript treats in a special way. */
function randomJson(random: Random, depth = 3): JsonValue {
  const kind = random.below(depth > 0 ? 6 : 4);
  if (kind === 0) return null;
  if (kind === 1) return random.pick([true, false]);
  if (kind === 2) return random.pick(numbers);
  if (kind === 3) return randomText(random);
  const values = Array.from({ length: random.below(4) }, () => randomJson(random, depth - 1));
  return kind === 4 ? values : objectOf(values.map((value) => [random.pick(keys), value]));
}

/** By JSON text, so that `__proto__` becomes an ordinary property. */
function objectOf(entries: readonly (readonly [string, JsonValue])[]): JsonValue {
  return JSON.parse(`{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`);
}

/** Makes a random message of a record, for the store contract. */
export function randomMessage(random: Random): Message {
  const text = { type: 'text', text: randomText(random), providerOptions: randomJson(random) };
  const toolCall = { type: 'tool-call', toolCallId: randomText(random), toolName: 't', input: randomJson(random) };
  const output = { type: 'json', value: randomJson(random) };
  const message = random.pick([
    { role: 'system', content: randomText(random), unknownField: randomJson(random) },
    { role: 'user', content: [text, { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } }] },
    { role: 'assistant', content: [{ ...text, type: 'reasoning' }, text, toolCall] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: randomText(random), toolName: 't', output }] },
  ]);
  return message as unknown as Message;
}

/** Makes a random record that a store must accept: with and without each optional field, with unknown fields. */
export function randomRecord(random: Random, runId: string): RunCheckpoint {
  const full = fullRecord(runId);
  const { version, meta, iteration, completedPhases, updatedAt } = sampleRecord(runId);
  const kept = Object.entries(full).filter(() => random.below(2) === 0);
  return {
    ...(Object.fromEntries(kept) as Partial<RunCheckpoint>),
    ...{ version, completedPhases, updatedAt: updatedAt + random.below(1_000), iteration: iteration + random.below(9) },
    meta: { ...meta, prompt: randomText(random), callerId: randomText(random) },
    messages: Array.from({ length: random.below(6) }, () => randomMessage(random)),
    ...(random.below(3) === 0 ? { inputs: { value: randomJson(random) } } : {}),
    ...(random.below(3) === 0 ? { fieldOfAnotherVersion: randomJson(random) } : {}),
  } as RunCheckpoint;
}
