import fc from 'fast-check';
import type { Checkpoint, ModelResponse, ResponseSnapshot, WriteSnapshot } from 'pawl/fan-out';

/** Texts that trip what is careless: lone surrogates, names of Object.prototype, line ends that JSON lets through. */
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('__proto__', 'constructor', '\ud800', 'a\udfffb', '\u2028', '"', '\\', '\0', ' ', '\ufeff'),
);
const filled = texts.filter((text) => text !== '');
const counts = fc.oneof(fc.nat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER));
const figures = fc.oneof(
  counts,
  fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }).filter((x) => x !== 0),
);

const writes: fc.Arbitrary<WriteSnapshot> = fc
  .record(
    { path: filled, content: texts, delete: fc.boolean(), base: fc.option(filled) },
    { requiredKeys: ['path', 'content'] },
  )
  .map((write) => ({ ...write }));

/**
 * Own properties only, `__proto__` too: as a Map of them would give. Without backslashes: once an object had the key `\\`,
 * the JSON.parse of Node 24 reads other keys that need an escape as that one.
 */
const names = texts.filter((text) => !text.includes('\\'));
const toolCalls = fc
  .array(fc.tuple(names, fc.nat()), { maxLength: 4 })
  .map((entries): Record<string, number> => Object.fromEntries(entries));

/** Whatever a host may say of an answer; nothing in it has to make sense. */
export const answers: fc.Arbitrary<ModelResponse> = fc
  .record(
    {
      modelId: texts,
      text: texts,
      latencyMs: counts,
      inputTokens: counts,
      outputTokens: counts,
      reasoningTokens: counts,
      costUsd: figures,
      proposedWrites: fc.array(writes, { maxLength: 3 }),
      toolCalls,
      error: texts,
      interrupted: fc.boolean(),
      stopReason: texts,
      steps: counts,
    },
    {
      requiredKeys: [
        ...(['modelId', 'text', 'latencyMs', 'inputTokens', 'outputTokens', 'costUsd', 'proposedWrites'] as const),
        ...(['toolCalls', 'interrupted', 'stopReason', 'steps'] as const),
      ],
    },
  )
  .map((answer) => ({ ...answer }));

/** What a host may hand to a saver: every flag as it likes, and empty things where there could be none. */
export const snapshots: fc.Arbitrary<ResponseSnapshot> = fc
  .tuple(answers, fc.boolean())
  .map(([answer, completed]) => ({ ...answer, completed }));

/** RFC 3339, as Pawl and as others write it. */
const times = fc
  .tuple(
    fc.date({ min: new Date(0), max: new Date('9999-12-30'), noInvalidDate: true }),
    fc.constantFrom('.000Z', 'Z', '.5Z', '.123456789+01:00', '-11:30'),
  )
  .map(([date, end]) => date.toISOString().slice(0, 19) + end);

/** A checkpoint of the models that it names. */
export const checkpointsOf = (responses: fc.Arbitrary<ResponseSnapshot>): fc.Arbitrary<Checkpoint> =>
  fc
    .record(
      {
        version: fc.constant(1 as const),
        prompt: texts,
        timestamp: times,
        adapterIds: fc.array(texts, { maxLength: 3 }),
        responses: fc.uniqueArray(responses, { maxLength: 3, selector: ({ modelId }) => modelId }),
        verbose: fc.boolean(),
        ranking: fc.record({ order: fc.array(texts, { maxLength: 3 }), reason: texts }),
      },
      { requiredKeys: ['version', 'prompt', 'timestamp', 'adapterIds', 'responses', 'verbose'] },
    )
    .map((checkpoint) => ({ ...checkpoint }));
