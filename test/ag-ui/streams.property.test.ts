import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { Mapper } from '../../src/ag-ui/mapper.ts';
import { agUiMessagesOf, type RecordedMessage } from '../../src/ag-ui/messages.ts';
import type { AgUiEvent, AgUiMessage } from '../../src/ag-ui/protocol.ts';
import { AgUiReader } from '../../src/ag-ui/reader.ts';
import type { RunEvent, RunEventBody } from '../../src/index.ts';
import type { Message } from '../../src/values/message.ts';
import { torture } from '../crash/random.ts';
import { applied, framed } from './real-client.ts';

type Part =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  | { readonly type: 'tool-call'; readonly callId: string; readonly input: object };
interface Step {
  readonly parts: readonly Part[];
  /** Attempts that are lost: how many pieces of each are published before the reset. */
  readonly lost: readonly number[];
  /** Which calls end first. */
  readonly order: readonly number[];
}

const RUN = 'turn';
const text = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' });
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ type: fc.constantFrom('text' as const, 'reasoning' as const), text }),
  fc.record({
    type: fc.constant('tool-call' as const),
    callId: fc.constant(''),
    input: fc.dictionary(text, text, { maxKeys: 2 }),
  }),
);
// The models of one run use the same call ids in each step.
const step: fc.Arbitrary<Step> = fc
  .record({
    parts: fc.array(part, { minLength: 1, maxLength: 5 }),
    lost: fc.array(fc.nat(12), { maxLength: 2 }),
    order: fc.array(fc.nat(99), { minLength: 5, maxLength: 5 }),
  })
  .map(({ parts, ...rest }) => ({
    ...rest,
    parts: parts.map((each, index) => ('callId' in each ? { ...each, callId: `call-${index}` } : each)),
  }));
const story = fc.array(step, { minLength: 1, maxLength: 4 });

const callsOf = ({ parts, order }: Step) =>
  parts
    .flatMap((each) => ('callId' in each ? [each] : []))
    .map((call, index) => ({ call, rank: order[index] ?? 0 }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ call }) => call);

/** The pieces of a step, two for each part. */
function piecesOf(number: number, { parts }: Step): RunEventBody[] {
  return parts.flatMap((each, block): RunEventBody[] => {
    const whole = 'callId' in each ? JSON.stringify(each.input) : each.text;
    const half = Math.ceil(whole.length / 2);
    return [0, half].map((offset, index): RunEventBody => {
      const at = { step: number, block, offset, text: index === 0 ? whole.slice(0, half) : whole.slice(half) };
      if ('callId' in each) return { type: 'tool.input', ...at, callId: each.callId, name: 'look' };
      return { type: 'model.delta', ...at, kind: each.type };
    });
  });
}

/** What happens in a step once its message is recorded. */
function restOf(number: number, step: Step): RunEventBody[] {
  const facts = (call: { callId: string }) => ({
    step: number,
    callId: call.callId,
    name: 'look',
    effect: 'once' as const,
  });
  return [
    ...callsOf(step).map(
      (call): RunEventBody => ({ type: 'tool.started', ...facts(call), input: call.input as never, attempt: 1 }),
    ),
    ...callsOf(step).map(
      (call): RunEventBody => ({
        type: 'tool.done',
        ...facts(call),
        output: { type: 'text', value: call.callId },
        ms: 1,
      }),
    ),
    { type: 'step.done', step: number, usage: {} as never, tools: [] },
  ];
}

const contentOf = ({ parts }: Step) =>
  parts.map((each) =>
    'callId' in each ? { type: 'tool-call', toolCallId: each.callId, toolName: 'look', input: each.input } : each,
  );

const numbered = (bodies: readonly RunEventBody[]): RunEvent[] =>
  bodies.map((body, seq) => ({ ...body, runId: RUN, seq, at: 0 }));

/** The events of a reader who was there from the beginning. */
function liveEvents(steps: readonly Step[]): RunEvent[] {
  return numbered(
    steps.flatMap((each, index): RunEventBody[] => {
      const number = index + 1;
      const begins: RunEventBody = { type: 'step.started', step: number };
      const lost = each.lost.flatMap((count): RunEventBody[] => [
        begins,
        ...piecesOf(number, each).slice(0, count),
        { type: 'step.reset', step: number },
      ]);
      return [...lost, begins, ...piecesOf(number, each), ...restOf(number, each)];
    }),
  );
}

/** The events of a reader who comes when so many steps are recorded: those come whole, and then what the other reader gets. */
function laterEvents(steps: readonly Step[], recorded: number): RunEvent[] {
  const whole = steps
    .slice(0, recorded)
    .flatMap((each, index): RunEventBody[] => [
      { type: 'step.snapshot', step: index + 1, content: contentOf(each) as never },
      ...restOf(index + 1, each),
    ]);
  const live = liveEvents(steps);
  const rest = live.slice(live.findLastIndex((event) => event.type === 'step.done' && event.step === recorded) + 1);
  return numbered([...whole, ...rest]);
}

function transcriptOf(steps: readonly Step[]): RecordedMessage[] {
  const messages = steps.flatMap((each): object[] => {
    const results = each.parts.flatMap((call) =>
      'callId' in call
        ? [
            {
              type: 'tool-result',
              toolCallId: call.callId,
              toolName: 'look',
              output: { type: 'text', value: call.callId },
            },
          ]
        : [],
    );
    return [
      { role: 'assistant', content: contentOf(each) },
      ...(results.length > 0 ? [{ role: 'tool', content: results }] : []),
    ];
  });
  return messages.map((message, index) => ({ id: `${RUN}:${index}`, runId: RUN, message: message as Message }));
}

function mapped(events: readonly RunEvent[], reader: AgUiReader): AgUiEvent[] {
  const mapper = new Mapper(RUN, reader);
  return [...events.flatMap((event) => mapper.map(event)), ...mapper.close()];
}

describe('the messages of the real client', () => {
  test.prop([story, fc.nat(), fc.nat()], { numRuns: torture > 1 ? 1_500 : 50 })(
    'equal the transcript of any run, with any lost attempts, and after a cut at any event (web 34, 35)',
    async (steps, first, second) => {
      const wanted = agUiMessagesOf(transcriptOf(steps));
      const live = liveEvents(steps);
      const cut = first % (live.length + 1);
      const had = await applied(framed(mapped(live.slice(0, cut), new AgUiReader())));
      const atLeast = live.slice(0, cut).filter(({ type }) => type === 'step.done').length;
      const recorded = atLeast + (second % (steps.length - atLeast + 1));
      const reader = new AgUiReader(had as AgUiMessage[]);
      // The state of a stream that begins now: everything of the steps that are recorded.
      const now = new AgUiReader();
      const later = laterEvents(steps, recorded);
      mapped(later.slice(0, second % (later.length + 1)), now);
      const again = [...reader.replace(now.messages), ...mapped(later, now)];
      expect(await applied(framed(again), had)).toEqual(wanted);
      expect(now.has(wanted)).toBe(true);
    },
  );
});
