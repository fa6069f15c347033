import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunHead } from '../../../src/record/checkpoint.ts';
import { headOf } from '../../../src/record/delta.ts';
import { type OpenCall, type OpenStep, resultsMessage } from '../../../src/run/open-step.ts';
import { encodeDelta, encodeRecord } from '../../../src/store/encoding/encode.ts';
import { Encryption } from '../../../src/store/encoding/encryption.ts';
import { isCutText, joinPieces, type Pieces, RunTexts, Splitter } from '../../../src/store/encoding/piece-refs.ts';
import { nextStep, sampleRecord, userMessage } from '../../../src/testing/store-contract/records.ts';
import type { Message } from '../../../src/values/message.ts';
import { torture } from '../../crash/random.ts';

/** What a store has of a run: pieces by name, and what it was given last. */
class Shelf {
  readonly pieces = new Map<string, string>();
  head = '';
  readonly messages: string[] = [];
  readonly #splitter: Splitter;

  constructor(splitter = new Splitter()) {
    this.#splitter = splitter;
  }

  append(delta: Parameters<typeof encodeDelta>[0]): Pieces {
    const split = this.#splitter.split(encodeDelta(delta), delta.head, { isContinued: true });
    for (const { name, text } of split.pieces) this.pieces.set(name, text);
    this.head = split.head;
    this.messages.push(...split.messages);
    return split;
  }

  join(text: string): string {
    return joinPieces(text, (name) => {
      const piece = this.pieces.get(name);
      return piece === undefined ? undefined : this.join(piece);
    });
  }

  get said(): unknown {
    return this.messages.map((text) => JSON.parse(this.join(text)));
  }
}

const withoutMeta = ({ meta: _, ...head }: RunHead) => head;

function stepOf(calls: readonly { readonly input: string; readonly result?: string | undefined }[]): OpenStep {
  const content = calls.map(({ input }, i) => ({
    type: 'tool-call' as const,
    toolCallId: `call-${i}`,
    toolName: 'send',
    input: { text: input },
  }));
  const ledger = calls.map(({ input, result }, i): OpenCall => {
    const call = { callId: `call-${i}`, name: 'send', input: { text: input }, effect: 'once' as const, attempt: 1 };
    return result === undefined
      ? { ...call, state: 'started' }
      : { ...call, state: 'done', result: { type: 'text', value: result } };
  });
  return { message: { role: 'assistant', content }, calls: ledger };
}

const long = (text: string) => text.repeat(200);

describe('pieces of a record (recovery 4)', () => {
  test('a message with many small calls with effects costs about as much for each call, however many they are', () => {
    const bytesFor = (count: number) => {
      const shelf = new Shelf();
      let record = sampleRecord('run');
      let bytes = 0;
      for (let answered = 0; answered <= count; answered += 4) {
        const calls = Array.from({ length: count }, (_, i) => ({
          input: `${i}`,
          result: i < answered ? `result ${i}` : undefined,
        }));
        const next = nextStep(record, [], { openStep: stepOf(calls) });
        record = next.record;
        const before = new Set(shelf.pieces.keys());
        const { pieces } = shelf.append(next.delta);
        bytes += shelf.head.length;
        for (const { name, text } of pieces) if (!before.has(name)) bytes += text.length;
        // To compare a large head costs more than all else here.
        if (answered % (torture > 1 ? 4 : 32) === 0)
          expect(JSON.parse(shelf.join(shelf.head))).toEqual(withoutMeta(next.delta.head));
      }
      return bytes / count;
    };
    // Eight times as many calls: each cost six times as much when every head had every line.
    expect(bytesFor(512) / bytesFor(64)).toBeLessThan(2);
  });

  test('an intent, its results and the messages that they become hold each text once', () => {
    const shelf = new Shelf();
    const first = nextStep(sampleRecord('run'), [], {
      openStep: stepOf([{ input: long('ab') }, { input: long('cd') }]),
    });
    shelf.append(first.delta);
    const done = stepOf([
      { input: long('ab'), result: long('ef') },
      { input: long('cd'), result: long('gh') },
    ]);
    const second = nextStep(first.record, [], { openStep: done });
    shelf.append(second.delta);
    expect(JSON.parse(shelf.join(shelf.head))).toEqual(withoutMeta(headOf(second.record)));
    const { openStep: _, ...closed } = second.record;
    const messages = [done.message, resultsMessage(done)];
    const last = shelf.append(nextStep(closed, messages).delta);
    expect(shelf.said).toEqual(messages);
    expect(last.inHead).toEqual([]);
    const everything = [...shelf.pieces.values(), ...shelf.messages].join('');
    for (const part of ['ab', 'cd', 'ef', 'gh']) expect(everything.split(long(part))).toHaveLength(2);
    // The small rest of the message is stored once as well: both of its calls.
    expect(everything.match(/"type":"tool-call"/g)).toHaveLength(2);
  });

  test('outputs of phases and steering that waits stay where they are from save to save', () => {
    const shelf = new Shelf();
    const phase = { name: 'one', output: long('out'), iterations: 1 };
    const undelivered = [userMessage(long('say'))];
    const first = nextStep(sampleRecord('run'), [], { completedPhases: [phase], undelivered });
    const names = shelf.append(first.delta).inHead;
    expect(names).toHaveLength(2);
    const second = nextStep(first.record, []);
    expect(shelf.append(second.delta).inHead).toEqual(names);
    expect(JSON.parse(shelf.join(shelf.head))).toEqual(withoutMeta(headOf(second.record)));
    const third = nextStep({ ...second.record, undelivered: [] }, undelivered);
    expect(shelf.append(third.delta).inMessages).toHaveLength(1);
    expect(shelf.said).toEqual(undelivered);
  });

  test('what is stored says all, also when nothing of what went before is known any more', () => {
    const openStep = stepOf([{ input: long('x'), result: long('y') }]);
    const open = nextStep(sampleRecord('run'), [], { openStep });
    const { openStep: _, ...closed } = open.record;
    const close = nextStep(closed, [openStep.message, resultsMessage(openStep)]);
    const splitter = new Splitter();
    new Shelf(splitter).append(open.delta);
    // As in another process, and as in a store that lost the write before.
    for (const late of [new Shelf(), new Shelf(splitter)]) {
      late.append(close.delta);
      expect(late.said).toEqual(close.delta.messages);
    }
  });

  test('a whole record names nothing from before', () => {
    const splitter = new Splitter();
    const open = nextStep(sampleRecord('run'), [], { openStep: stepOf([{ input: long('x') }]) });
    splitter.split(encodeDelta(open.delta), open.delta.head, { isContinued: true });
    const record = { ...open.record, openStep: undefined, messages: [open.record.openStep?.message as Message] };
    const { openStep: _, ...whole } = record;
    const split = splitter.split(encodeRecord(whole), whole, { isContinued: false });
    expect(split.messages.some(isCutText)).toBe(false);
    expect(split.pieces).toEqual([]);
  });

  test('a text that names a piece which is not there is damaged', () => {
    const text = '{"a":\u001axyz\u001a}';
    expect(() => joinPieces(text, () => undefined)).toThrow('its piece xyz is missing');
  });

  test('an encrypted text is read also where the names of its pieces stand after it, as earlier layouts stored it', () => {
    const open = (text: string) => (/^[0-9a-f]*$/.test(text) ? Buffer.from(text, 'hex').toString() : undefined);
    const encryption = new Encryption({ seal: (text) => Buffer.from(text).toString('hex'), open: open as never });
    const head = encryption.seal('{"a":\u001ax.1\u001a}', 'run', 'head');
    const pieces = new Map([['x.1', { stored: encryption.seal('7', 'run', 'piece x.1') }]]);
    const texts = new RunTexts(encryption, 'run');
    for (const stored of [head, `${head}\u001ax.1\u001a`]) expect(texts.whole(stored, 'head', pieces)).toBe('{"a":7}');
  });

  test('any course of steps is put together as it was, with any texts', () => {
    const piece = fc.constantFrom('a', '","', '{"type":"text"}', '\\', '"', '\u001a', '\ud800', '[1,2]', '}],');
    const text = fc
      .tuple(fc.array(piece, { maxLength: 4 }), fc.constantFrom(1, 60))
      .map(([parts, n]) => parts.join('').repeat(n));
    const call = fc.record({ input: text, result: fc.option(text, { nil: undefined }) });
    const save = fc.record({
      calls: fc.array(call, { maxLength: 4 }),
      undelivered: fc.array(text.map(userMessage), { maxLength: 2 }),
      outputs: fc.array(text, { maxLength: 2 }),
      isClosed: fc.boolean(),
      isForgotten: fc.boolean(),
    });
    const run = (saves: readonly (typeof save extends fc.Arbitrary<infer S> ? S : never)[]) => {
      const splitter = new Splitter();
      const shelf = new Shelf(splitter);
      let record = sampleRecord('run', { messages: [] });
      for (const { calls, undelivered, outputs, isClosed, isForgotten } of saves) {
        if (isForgotten) splitter.forget('run');
        const { openStep, ...rest } = record;
        const done = isClosed && openStep ? [openStep.message, resultsMessage(openStep)] : (record.undelivered ?? []);
        const completedPhases = outputs.map((output, i) => ({ name: `${i}`, output, iterations: 1 }));
        const step = nextStep(rest, done, {
          completedPhases,
          undelivered,
          ...(isClosed ? {} : { openStep: stepOf(calls) }),
        });
        const { pieces, inHead, inMessages } = shelf.append(step.delta);
        expect(new Set(pieces.map(({ name }) => name))).toEqual(new Set([...inHead, ...inMessages]));
        record = step.record;
        expect(JSON.parse(shelf.join(shelf.head))).toEqual(withoutMeta(headOf(record)));
      }
      expect(shelf.said).toEqual(record.messages);
    };
    fc.assert(fc.property(fc.array(save, { maxLength: 8 }), run), { numRuns: 100 * torture });
  });
});
