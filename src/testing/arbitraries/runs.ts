import { type RunCheckpoint, toCheckpoint } from '../../record/checkpoint.ts';
import type { RunFields } from '../../run/fields.ts';
import type { ToolEffect } from '../../run/open-step.ts';
import { outcomeOf } from '../../run/outcome.ts';
import {
  beginProgress,
  closeStep,
  deliver,
  openStep,
  type Progress,
  recordAnswer,
  recordResult,
  startCalls,
} from '../../run/progress.ts';
import type { ModelReply } from '../../run/reply.ts';
import type { Invocation, RunCheckpointMeta } from '../../run/request.ts';
import type { Wait } from '../../run/waits/wait.ts';
import { openWaits } from '../../run/waits/wait-rules.ts';
import type { JsonObject, JsonValue } from '../../values/json.ts';
import { enterMessage, type Message, type ToolOutput } from '../../values/message.ts';
import type { Usage } from '../../values/usage.ts';
import type { Arbitrary, Generators } from './fast-check.ts';

interface Call {
  readonly name: string;
  readonly id: string;
  readonly input: unknown;
  readonly output: ToolOutput;
}

/** One turn of a model: its text and calls, and the messages before the next turn. */
interface Turn {
  readonly text: string;
  readonly thought: string | undefined;
  readonly options: JsonObject | undefined;
  readonly calls: readonly Call[];
  readonly usage: Usage;
  readonly steered: string | undefined;
}

const tools: { readonly [name: string]: { readonly effect: ToolEffect } } = {
  look_up: { effect: 'read' },
  reserve: { effect: 'idempotent' },
  pay: { effect: 'once' },
};
const image = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'iVBORw0KGgo=' } } as const;

function turnsWith(fc: Generators): Arbitrary<Turn[]> {
  const text = textWith(fc);
  const value = jsonWith(fc, 3);
  const output = fc
    .record({ kind: fc.constantFrom('text', 'json', 'content', 'error-text'), text, value })
    .map(outputOf);
  const call = fc.record<Call>({
    name: fc.constantFrom(...Object.keys(tools), 'unknown', '__proto__'),
    // Some models count their calls from the start in each turn.
    id: fc.constantFrom('call_0', 'call_1', 'a', ''),
    input: value,
    output,
  });
  const count = fc.nat(10_000);
  const usage = fc.record<Usage>({
    inputTokens: count,
    outputTokens: count,
    reasoningTokens: count,
    cacheReadTokens: count,
    cacheWriteTokens: count,
  });
  const turn = fc.record<Turn>({
    text,
    thought: fc.option(text, { nil: undefined }),
    options: fc.option(fc.dictionary(text, value, { maxKeys: 2 }), { nil: undefined }) as Arbitrary<
      JsonObject | undefined
    >,
    calls: fc.array(call, { maxLength: 3 }),
    usage,
    steered: fc.option(text, { nil: undefined }),
  });
  return fc.array(turn, { maxLength: 5 });
}

/** Any text, with lone surrogates: providers may cut their deltas anywhere. */
function textWith(fc: Generators): Arbitrary<string> {
  return fc
    .record({ text: fc.string({ unit: 'binary', maxLength: 12 }), isCut: fc.boolean() })
    .map(({ text, isCut }) => (isCut ? `${text}\ud83d` : text));
}

/** JSON has no -0: it would be read as 0. */
function jsonWith(fc: Generators, maxDepth: number): Arbitrary<unknown> {
  return fc.jsonValue({ maxDepth }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
}

function outputOf({ kind, text, value }: { kind: string; text: string; value: unknown }): ToolOutput {
  if (kind === 'json') return { type: 'json', value: value as null };
  if (kind === 'content') return { type: 'content', value: [{ type: 'text', text }, image] };
  return { type: kind === 'text' ? 'text' : 'error-text', value: text };
}

function replyOf({ text, thought, options, calls, usage }: Turn): ModelReply {
  const providerOptions = options ? { providerOptions: { anyone: options } } : {};
  const content = [
    ...(thought === undefined ? [] : [{ type: 'reasoning' as const, text: thought, ...providerOptions }]),
    { type: 'text' as const, text, ...providerOptions },
    ...calls.map(({ id, name, input }) => ({ type: 'tool-call' as const, toolCallId: id, toolName: name, input })),
  ];
  return { message: { role: 'assistant', content }, finishReason: calls.length > 0 ? 'tool-calls' : 'stop', usage };
}

/** Applies a turn as a run does. `isOpen`: its first call is answered, the second is running, the others wait. */
function played(progress: Progress, turn: Turn, isOpen: boolean): Progress {
  if (turn.calls.length === 0) return steered(recordAnswer(progress, replyOf(turn)), turn);
  const opened = openStep(progress, replyOf(turn), tools);
  const ids = opened.openStep?.calls.map(({ callId }) => callId) ?? [];
  const started = startCalls(opened, new Set(isOpen ? ids.slice(0, 2) : ids));
  const answered = isOpen ? ids.slice(0, ids.length === 1 ? 0 : 1) : ids;
  const outputs = turn.calls.map(({ output }) => output);
  const result = answered.reduce((each, id, i) => recordResult(each, id, outputs[i] as ToolOutput), started);
  return isOpen ? result : steered(closeStep(result), turn);
}

function steered(progress: Progress, { steered: text }: Turn): Progress {
  if (text === undefined) return progress;
  return deliver({ ...progress, undelivered: [said(text)] });
}

function said(text: string) {
  return enterMessage({ role: 'user', content: [{ type: 'text', text }] });
}

function metaWith(fc: Generators): Arbitrary<RunCheckpointMeta> {
  const word = fc.string({ unit: 'grapheme', maxLength: 8 });
  const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
  return fc.record<RunCheckpointMeta>({
    runId: id,
    agentId: id,
    agentName: word,
    callerId: word,
    channelId: word,
    guildId: word,
    prompt: textWith(fc),
    modelTier: word,
    parentRunId: word,
  });
}

/** `played`: by the functions that real runs use. `absent`: no recovery continues a run that has the field. */
type FieldOrigin<T> = 'played' | 'absent' | ((fc: Generators) => Arbitrary<T>);

/** How each field of a run is made here. A field without a line does not compile. */
export const fieldOrigins: { readonly [K in keyof Required<RunFields>]: FieldOrigin<NonNullable<RunFields[K]>> } = {
  meta: 'played',
  fingerprint: (fc) => fc.constantFrom('a'.repeat(64), 'stored:b'),
  // The recovery of a child needs its parent.
  parent: 'absent',
  labels: (fc) => fc.dictionary(wordWith(fc), wordWith(fc), { maxKeys: 3 }),
  thread: (fc) => fc.record({ id: wordWith(fc), upTo: fc.nat(100) }),
  hosted: (fc) => fc.constantFrom(true),
  birth: (fc) => wordWith(fc),
  forkedFrom: (fc) => fc.record({ runId: wordWith(fc), at: fc.nat(99) }),
  effects: (fc) => fc.constantFrom<'ask' | 'refuse'>('ask', 'refuse'),
  trace: (fc) => wordWith(fc),
  imported: (fc) => fc.constantFrom(true),
  beganAt: (fc) => fc.nat(2 ** 40),
  elapsedMs: (fc) => fc.nat(60_000),
  iteration: 'played',
  openStep: 'played',
  waiting: 'played',
  openPhase: 'absent',
  workflow: 'absent',
  undelivered: (fc) => messagesWith(fc),
  nudges: (fc) => messagesWith(fc),
  critic: (fc) => fc.dictionary(wordWith(fc), jsonWith(fc, 1), { maxKeys: 2 }) as Arbitrary<JsonObject>,
  spend: (fc) => fc.record({ tokens: fc.nat(10_000), usd: fc.nat(9), seconds: fc.nat(60) }),
  counters: 'played',
  usage: 'played',
  models: (fc) => fc.array(fc.record({ model: wordWith(fc) }), { maxLength: 3 }),
  completedPhases: 'absent',
  attempts: (fc) => fc.nat(3),
  attempt: (fc) => fc.record({ number: fc.nat(99), from: fc.nat(2 ** 40) }),
  retries: (fc) =>
    fc.array(fc.record({ at: fc.nat(2 ** 40), steps: fc.nat(99), error: fc.record({ code: wordWith(fc) }) }), {
      maxLength: 2,
    }),
  definition: 'played',
  commands: (fc) => fc.array(wordWith(fc), { maxLength: 3 }),
  raisedSteps: (fc) => fc.nat(5),
  treeRuns: (fc) => fc.nat(999).map((runs) => runs + 1),
  finishReason: 'played',
  outcome: 'played',
  refused: (fc) => fc.constantFrom<true | 'parked'>(true, 'parked'),
  parked: 'played',
  setup: (fc) => fc.record({ code: fc.constantFrom('UNKNOWN_TIER', 'MODEL'), since: fc.nat(2 ** 31) }),
  inputs: 'played',
  images: 'played',
  earlier: 'absent',
  phaseMessages: 'absent',
  messages: 'played',
};

function wordWith(fc: Generators): Arbitrary<string> {
  return fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
}

function messagesWith(fc: Generators): Arbitrary<readonly Message[]> {
  return fc.array(textWith(fc), { maxLength: 1 }).map((texts) => texts.map(said));
}

/** The fields that are drawn one by one; each is sometimes absent. */
function fieldsWith(fc: Generators): Arbitrary<Partial<Progress>> {
  const drawn = Object.entries(fieldOrigins).flatMap(([key, origin]) =>
    typeof origin === 'string'
      ? []
      : [[key, fc.option((origin as (fc: Generators) => Arbitrary<unknown>)(fc), { nil: undefined })]],
  );
  return fc.record<Record<string, unknown>>(Object.fromEntries(drawn)).map(definedOf) as Arbitrary<Partial<Progress>>;
}

/** Makes an arbitrary of runs at any point, made by the functions that real runs use. */
export function progressesWith(fc: Generators, may: { beOpen: boolean }): Arbitrary<Progress> {
  return fc
    .record({
      meta: metaWith(fc),
      turns: turnsWith(fc),
      isOpen: fc.boolean(),
      inputs: fc.dictionary(fc.string({ unit: 'binary', maxLength: 4 }), jsonWith(fc, 2), { maxKeys: 2 }),
      hasImage: fc.boolean(),
      fields: fieldsWith(fc),
    })
    .map(({ meta, turns, isOpen, inputs, hasImage, fields }) => {
      const extra = { inputs: inputs as JsonObject, images: hasImage ? [image] : [] };
      const begun = beginProgress(meta, { version: '1', hash: 'a1b2c3' }, extra);
      const progress = turns.reduce(
        (each, turn, i) => played(each, turn, may.beOpen && isOpen && i === turns.length - 1),
        begun,
      );
      return { ...progress, ...fields };
    });
}

/** Makes an arbitrary of invocations that no executor refuses. */
export function invocationsWith(fc: Generators): Arbitrary<Invocation> {
  const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
  const word = fc.option(fc.string({ unit: 'grapheme', maxLength: 8 }), { nil: undefined });
  const names = fc.string({ unit: 'grapheme', maxLength: 4 }).map((name) => `input ${name}`);
  return fc
    .record({
      prompt: textWith(fc),
      runId: fc.option(id, { nil: undefined }),
      callerId: word,
      channelId: word,
      guildId: word,
      parentRunId: word,
      inputs: fc.option(fc.dictionary(names, jsonWith(fc, 2), { maxKeys: 2 }), { nil: undefined }),
      hasImage: fc.boolean(),
    })
    .map(({ prompt, runId, inputs, hasImage, ...attribution }) => ({
      ...definedOf(attribution),
      // An empty prompt is refused, and so is an id that begins with ~.
      prompt: `Go ${prompt}`,
      ...(runId === undefined ? {} : { runId: `run ${runId}` }),
      ...(inputs === undefined ? {} : { inputs: inputs as JsonObject }),
      ...(hasImage ? { images: [{ mediaType: 'image/png', data: 'iVBORw0KGgo=' }] } : {}),
    }));
}

function definedOf<T extends object>(fields: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

/** The parts of a wait for a call. */
interface Waited {
  readonly kind: 'approval' | 'question' | 'event' | 'timer';
  readonly text: string;
  readonly value: unknown;
  readonly createdAt: number;
  readonly dueAt: number;
}

function waitsWith(fc: Generators): Arbitrary<Waited | undefined> {
  const time = fc.nat(2 ** 31);
  const wait = fc.record<Waited>({
    kind: fc.constantFrom('approval', 'question', 'event', 'timer'),
    text: textWith(fc),
    value: jsonWith(fc, 2),
    createdAt: time,
    // In the past: recovery ends the wait, and continues the run.
    dueAt: time,
  });
  return fc.option(wait, { nil: undefined });
}

/** The calls that have not started wait, as calls of real runs do. */
function waitingOf(progress: Progress, waited: Waited | undefined): Progress {
  const planned = progress.openStep?.calls.filter(({ state }) => state === 'planned') ?? [];
  if (!waited) return progress;
  return openWaits(
    progress,
    planned.map(({ callId, name }) => waitOf(waited, { callId, tool: name, step: progress.iteration + 1 })),
  );
}

function waitOf(
  { kind, text, value, createdAt, dueAt }: Waited,
  call: { readonly callId: string; readonly tool: string; readonly step: number },
): Wait {
  const facts = { id: `wait-${call.callId}`, createdAt, dueAt, ...call };
  switch (kind) {
    case 'approval': {
      const votes = [{ by: { id: text }, at: createdAt, note: text }];
      const asked = { prompt: text, detail: value as JsonValue, digest: 'd'.repeat(64), quorum: 2, votes };
      return { ...facts, kind, ...asked, editable: true, onExpiry: 'deny' };
    }
    case 'question':
      return { ...facts, kind, question: text, options: [value as JsonValue] };
    case 'event':
      return { ...facts, kind, name: text, key: text };
    case 'timer':
      return { ...facts, kind };
  }
}

/** Makes an arbitrary of records: some wait, some are parked, some have an outcome that is not delivered yet. */
export function checkpointsWith(fc: Generators): Arbitrary<RunCheckpoint> {
  return fc
    .record({
      progress: progressesWith(fc, { beOpen: true }),
      end: fc.constantFrom(undefined, undefined, undefined, 'ok', 'error', 'parked'),
      now: fc.nat(2 ** 31),
      revision: fc.nat(500),
      seq: fc.nat(5_000),
      waited: waitsWith(fc),
    })
    .map(({ progress, end, now, revision, seq, waited }) => {
      const last = end === undefined ? waitingOf(progress, waited) : { ...progress, ...endOf(progress, end) };
      const record = { ...toCheckpoint(last, now * 1_000, revision), seq };
      return JSON.parse(JSON.stringify(record)) as RunCheckpoint;
    });
}

function endOf(progress: Progress, end: 'ok' | 'error' | 'parked' | undefined): Partial<Progress> {
  // A run does not end with `ok` in the middle of a step.
  if (end === undefined || (end === 'ok' && progress.openStep)) return {};
  if (end === 'parked') return { parked: { code: 'RUN_PARKED', reason: '3 starts without progress' } };
  const error = { name: 'ModelError', code: 'MODEL', message: 'the model is down' };
  const told = { durable: true, saveErrors: 0, outcomeId: `${progress.meta.runId}:1` };
  return { outcome: outcomeOf(progress, end === 'error' ? { status: end, error } : { status: end }, told) };
}
