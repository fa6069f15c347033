import { createExecutor, defineAgent, type Model, type ModelEntry, memoryStore, type RunEvent } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { modelUses, type RunUse } from '../../../src/kit.ts';
import { toolOf } from '../../fixtures/host.ts';
import {
  type Answer,
  breaksWith,
  type Format,
  formats,
  refuses,
  replies,
  serveProvider,
  stopsAfter,
} from '../../model/providers/provider-server.ts';

const [FIRST_CHUNK_MS, CHUNK_GAP_MS] = [120_000, 60_000];
const done = replies({ text: 'done', end: 'stop' });
const calls = (name: string) => replies({ call: { id: `call_${name}`, name, input: {} }, end: 'calls' });
const overloaded = { status: 529, message: 'Overloaded' };
const limited = { status: 429, message: 'Too many requests' };
const half = { text: 'Half' };

interface Failure {
  readonly failure: string;
  readonly answer: Answer;
  /** How often the first model is asked in the step that fails. */
  readonly asked: 1 | 2;
  readonly status?: number;
  readonly code?: 'MODEL_STALLED';
  /** The words before it are read, and taken back. */
  readonly isHalf?: true;
}

const failures: readonly Failure[] = [
  { failure: '401', answer: refuses({ status: 401, message: 'invalid key' }), asked: 1, status: 401 },
  { failure: '429 with a retry-after', answer: refuses(limited, { 'retry-after': '20' }), asked: 1, status: 429 },
  { failure: '429 without a retry-after', answer: refuses(limited), asked: 2, status: 429 },
  { failure: '529', answer: refuses(overloaded), asked: 2, status: 529 },
  { failure: 'a stream that is cut before its first piece', answer: stopsAfter({}, 'cut'), asked: 2 },
  { failure: 'a stream that is cut in its text', answer: stopsAfter(half, 'cut'), asked: 2, isHalf: true },
  { failure: 'a stream that ends in its text', answer: stopsAfter(half, 'ended'), asked: 2, isHalf: true },
  { failure: 'an overload in its stream', answer: breaksWith(overloaded), asked: 2, isHalf: true },
  { failure: 'silence before its first piece', answer: stopsAfter({}, 'silent'), asked: 2, code: 'MODEL_STALLED' },
  {
    ...{ failure: 'silence in its text', answer: stopsAfter(half, 'silent'), asked: 2, code: 'MODEL_STALLED' },
    isHalf: true,
  },
];

/** The provider package that stands behind another one. */
const behind = (format: Format) => formats[(formats.indexOf(format) + 1) % formats.length] as Format;
const nameOf = ({ model }: { readonly model: { readonly provider: string; readonly modelId: string } }) =>
  `${model.provider}/${model.modelId}`;

/** An executor with a list. Its time passes where a run waits for the next attempt, or for a model that is silent. */
function hostOf(list: readonly (Model | ModelEntry)[]) {
  const clock = testClock();
  const events: RunEvent[] = [];
  let passing = Promise.resolve();
  const pass = (ms: number) => {
    passing = passing.then(() => clock.advance(ms));
  };
  const paid: unknown[] = [];
  const agent = defineAgent({
    ...{ id: 'worker', instructions: 'Work.' },
    tools: [toolOf('look'), toolOf('pay', 'once', async () => paid.push(1))],
  });
  const executor = createExecutor({
    ...{ models: { fast: list }, agents: [agent], clock, store: memoryStore({ clock }), random: () => 0 },
    ...{ journal: true, logger: { warn: () => {} } },
    defaults: { firstChunkMs: FIRST_CHUNK_MS, chunkGapMs: CHUNK_GAP_MS, waitLingerMs: 1 },
    observers: [
      {
        onEvent: (event) => {
          events.push(event);
          if (event.type === 'model.retry') pass(event.delayMs);
          if (event.type === 'wait.opened') pass(1);
        },
      },
    ],
  });
  const ask = (runId: string) => executor.start(agent, { runId, prompt: 'Go.' });
  const of = <Type extends RunEvent['type']>(type: Type) =>
    events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
  return { executor, events, of, paid, pass, ask };
}

/** A run whose first model calls a tool, and fails in the next step; the second one calls another tool, and answers. */
async function handedOver(format: Format, { answer, isHalf, code }: Failure) {
  let pass = (_ms: number) => {};
  const fails: Answer = (line) => {
    answer(line);
    if (code && !isHalf) pass(FIRST_CHUNK_MS);
  };
  await using first = await serveProvider(format, [calls('pay'), fails]);
  await using second = await serveProvider(behind(format), [calls('look'), done]);
  const host = hostOf([
    { model: first.model, key: 'a' },
    { model: second.model, key: 'b' },
  ]);
  pass = host.pass;
  const run = await host.ask('r');
  const seen = (async () => {
    let text = '';
    for await (const event of run.events())
      if (event.type === 'model.delta' && event.step === 2) {
        text += event.text;
        if (code) pass(CHUNK_GAP_MS);
      }
    return text;
  })();
  const result = await run.result;
  const { progress } = (run.actor.getSnapshot() as { context: { progress: RunUse } }).context;
  const kept: RunEvent[] = [];
  for await (const event of host.executor.events('r')) kept.push(event);
  await host.executor.shutdown();
  return { ...host, first, second, result, seen: await seen, kept, models: modelUses(progress) };
}

describe('a list whose first model is of a real provider package', () => {
  const cells = failures.flatMap((failure) => formats.map((format) => ({ ...failure, format })));
  test.concurrent.for(cells)(
    '$format, and fails with $failure: the next one continues the run, and nothing is sent more often than it must be (failover 2, 3, 4, 7, 12, 14, 29)',
    async (cell) => {
      const { asked, status, code = 'MODEL', isHalf } = cell;
      const { result, first, second, of, paid, seen, kept, models } = await handedOver(cell.format, cell);
      expect(result).toMatchObject({ status: 'ok', output: 'done', iterations: 3 });
      expect(paid).toEqual([1]);
      const [from, to] = [nameOf(first), nameOf(second)];
      // The failed step has one body, however often it is sent; the step after it is asked of the model that answered.
      expect([first.bodies.length, second.bodies.length]).toEqual([1 + asked, 2]);
      expect(new Set(first.bodies.slice(1)).size).toBe(1);
      const handed = { step: 2, attempt: 2, from, to, error: { code }, ...(status === undefined ? {} : { status }) };
      for (const events of [of('model.fallback'), kept.filter(({ type }) => type === 'model.fallback')])
        expect(events).toMatchObject([handed]);
      expect(of('model.retry')).toMatchObject(Array(asked - 1).fill({ step: 2, model: from, attempt: 2 }));
      expect(of('step.reset')).toHaveLength(isHalf ? 2 : 0);
      expect(seen.includes('Half')).toBe(isHalf === true);
      expect(JSON.stringify(result.messages)).not.toContain('Half');
      expect(models).toMatchObject([
        { model: from, turns: 1 },
        { model: to, turns: 2 },
      ]);
      expect(result.messages.flatMap(({ providerOptions }) => providerOptions?.pawl ?? [])).toMatchObject([
        { model: from, key: 'a' },
        { model: to, key: 'b' },
        { model: to, key: 'b' },
      ]);
    },
  );

  const wrong = { status: 400, message: 'messages.0: a role is not known' };
  const finals = formats.flatMap((format) => [
    { format, where: 'at once', refusal: refuses(wrong) },
    { format, where: 'in its stream', refusal: breaksWith(wrong) },
  ]);

  test.concurrent.for(finals)(
    '$format, and refuses the request $where: the run ends, and no other model is asked (failover 3, 29)',
    async ({ format, refusal }) => {
      await using first = await serveProvider(format, [calls('pay'), refusal]);
      await using second = await serveProvider(behind(format), [done]);
      const host = hostOf([first.model, second.model]);
      const result = await (await host.ask('r')).result;
      expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
      expect([first.bodies.length, second.bodies.length, host.of('model.fallback').length]).toEqual([2, 0, 0]);
    },
  );

  test.concurrent.for(finals)(
    '$format, and is away: a refusal $where by the next one keeps the run waiting (failover 3, 5, 29)',
    async ({ format, refusal }) => {
      await using first = await serveProvider(behind(format), [refuses(overloaded)]);
      await using second = await serveProvider(format, [refusal]);
      const host = hostOf([{ model: first.model, maxAttempts: 1 }, second.model]);
      const result = await (await host.ask('r')).result;
      expect(result).toMatchObject({ status: 'waiting', waits: [{ kind: 'retry', needsPerson: false }] });
      expect([first.bodies.length, second.bodies.length]).toEqual([1, 1]);
    },
  );

  test.concurrent.for(finals)(
    'that rests: where the next one, of $format, refuses the request $where, the first is asked all the same (failover 3, 6, 29)',
    async ({ format, refusal }) => {
      await using first = await serveProvider(behind(format), [refuses(overloaded), done]);
      await using second = await serveProvider(format, [done, refusal]);
      const host = hostOf([{ model: first.model, maxAttempts: 1 }, second.model]);
      for (const runId of ['one', 'two'])
        expect(await (await host.ask(runId)).result).toMatchObject({ status: 'ok', output: 'done' });
      expect([first.bodies.length, second.bodies.length]).toEqual([2, 2]);
      expect(host.of('model.fallback')).toMatchObject([
        { runId: 'one', from: nameOf(first), to: nameOf(second) },
        { runId: 'two', from: nameOf(second), to: nameOf(first) },
      ]);
    },
  );
});
