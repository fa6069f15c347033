import type { Defaults, Model } from 'pawl';
import { reply, scriptedModel, stallAfter } from 'pawl/testing';
import { type Failure, fail, unreadable, withoutJson } from './failures.ts';
import { type Port, throwing } from './scene.ts';

const finish = {
  type: 'finish',
  finishReason: { unified: 'stop', raw: 'stop' },
  usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
};
const text = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'done' },
  { type: 'text-end', id: 't' },
];

/** For what hangs alone: a busy machine may take as long for what answers at once. */
const impatient = { firstChunkMs: 40, chunkGapMs: 40 };

function modelOf(doStream: () => unknown, failure?: Failure): { models: { fast: Model }; defaults: Partial<Defaults> } {
  const model = { specificationVersion: 'v4', provider: 'test', modelId: 'test', supportedUrls: {}, doStream };
  return { models: { fast: model as never }, defaults: failure === 'hangs' ? impatient : {} };
}

/** A stream of parts; asking the reader is up to the test. */
const streaming = (parts: readonly unknown[], reader: object = {}, failure?: Failure) =>
  modelOf(async () => ({ stream: { getReader: () => ({ ...readerOf(parts), ...reader }) } }), failure);

function readerOf(parts: readonly unknown[]) {
  const rest = [...parts];
  return {
    read: async () => (rest.length === 0 ? { done: true } : { done: false, value: rest.shift() }),
    cancel: async () => {},
  };
}

/** Properties can be bad to read, and what they hold can be. */
function badProperty(failure: Failure): PropertyDescriptor {
  return { enumerable: true, get: () => fail(failure) };
}

const model = { hangs: 'MODEL_STALLED', else: 'MODEL' } as const;

export const modelPorts: readonly Port[] = [
  {
    name: 'models function',
    scene: (act) => ({ options: { models: act } }),
    ends: {
      rejects: 'UNSUPPORTED',
      'rejects with what cannot be read': 'UNSUPPORTED',
      'gives what cannot be read': 'UNSUPPORTED',
      'gives what has a throwing toJSON': 'UNSUPPORTED',
      hangs: 'UNSUPPORTED',
      else: 'UNKNOWN_TIER',
    },
  },
  {
    name: 'models record',
    scene: (act) => ({
      options: { models: Object.defineProperty({}, 'fast', { enumerable: true, get: act }) as never },
    }),
    failures: throwing,
    ends: { else: 'UNKNOWN_TIER' },
  },
  {
    name: 'model.specificationVersion',
    scene: (act) => ({
      options: { models: { fast: Object.defineProperty(scriptedModel([]), 'specificationVersion', { get: act }) } },
    }),
    failures: throwing,
    ends: { else: 'UNSUPPORTED' },
  },
  { name: 'model.doStream', scene: (act, failure) => ({ options: modelOf(act, failure) }), ends: model },
  {
    name: 'stream.getReader',
    scene: (act, failure) => ({ options: modelOf(async () => ({ stream: { getReader: act } }), failure) }),
    ends: { else: 'MODEL' },
  },
  { name: 'reader.read', scene: (act, failure) => ({ options: streaming([], { read: act }, failure) }), ends: model },
  {
    name: 'reader.cancel, of a stream that stalled',
    scene: (act) => ({
      options: streaming([], { read: () => new Promise(() => {}), cancel: act }, 'hangs'),
    }),
    ends: { else: 'MODEL_STALLED' },
  },
  {
    name: 'a part of the stream',
    scene: (_, failure) => ({
      options: streaming([
        Object.defineProperty({ type: 'text-delta', id: 't' }, 'delta', badProperty(failure)),
        finish,
      ]),
    }),
    failures: throwing,
    ends: { else: 'MODEL' },
  },
  {
    name: 'metadata of a part',
    scene: (_, failure) => {
      const bad = failure === 'gives what cannot be read' ? unreadable() : withoutJson();
      return { options: streaming([{ type: 'text-delta', id: 't', delta: 'x', providerMetadata: bad }, finish]) };
    },
    failures: ['gives what cannot be read', 'gives what has a throwing toJSON'],
    ends: { else: 'MODEL' },
  },
  {
    name: 'usage of the finish part',
    scene: (_, failure) => ({
      options: streaming([...text, Object.defineProperty({ ...finish }, 'usage', badProperty(failure))]),
    }),
    failures: throwing,
    ends: { else: ['MODEL', 'ok'] },
  },
  {
    name: 'a scripted model that falls silent',
    scene: () => ({
      options: { defaults: impatient },
      script: [stallAfter('half'), stallAfter('half'), stallAfter('half'), reply('never')],
    }),
    failures: ['hangs'],
    ends: { else: 'MODEL_STALLED' },
  },
];
