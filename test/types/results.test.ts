import {
  type Agent,
  defineAgent,
  type ErrorCode,
  type ErrorData,
  type JsonValue,
  type KnownErrorCode,
  PawlError,
  type Run,
  type RunOutput,
  type RunResult,
} from 'pawl';
import { fail, reply } from 'pawl/testing';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { createActor, setup, toPromise } from 'xstate';
import { z } from 'zod';
import * as errorClasses from '../../src/values/errors.ts';
import { hostOf } from '../fixtures/host.ts';

const city = z.object({ name: z.string(), people: z.number() });
type City = z.infer<typeof city>;
const answer = '{"name":"Bern","people":137000}';
const schemaOfAiSdk = { _type: {} as City, jsonSchema: { type: 'object' } };
const citizens = defineAgent({ id: 'citizens', instructions: 'Count.', output: city });

describe('the type of a result', () => {
  test('is a union by status: an ok run has its data and no error, each other status has an error and no data', async () => {
    expectTypeOf<Extract<RunResult<City>, { status: 'ok' }>['data']>().toEqualTypeOf<City>();
    expectTypeOf<Extract<RunResult<City>, { status: 'ok' }>['error']>().toEqualTypeOf<undefined>();
    expectTypeOf<Exclude<RunResult<City>, { status: 'ok' }>['error']>().toEqualTypeOf<ErrorData>();
    expectTypeOf<Exclude<RunResult<City>, { status: 'ok' }>['data']>().toEqualTypeOf<undefined>();
    const good = await hostOf({ script: [reply(answer)] }).executor.run(citizens, { prompt: 'Go.' });
    expect(good.status).toBe('ok');
    expect(good.error).toBeUndefined();
    const { executor } = hostOf({ script: [fail(Object.assign(new Error('down'), { statusCode: 400 }))] });
    const bad = await executor.run(citizens, { prompt: 'Go.' });
    if (bad.status === 'ok') throw new Error('it did not fail');
    expect(bad.error.message).toContain('down');
    expect(bad.data).toBeUndefined();
  });

  test('has the data of the agent’s output schema, through start, run, get and the logic for host machines', async () => {
    const { executor } = hostOf({ script: [reply(answer), reply(answer), reply(answer)] });
    const run = await executor.start(citizens, { prompt: 'Go.' });
    expectTypeOf(run).toEqualTypeOf<Run<City>>();
    const started = await run.result;
    expect(started.status === 'ok' && started.data.people).toBe(137_000);
    const result = await executor.run(citizens, { prompt: 'Go.' });
    expect(result.status === 'ok' && result.data.name.toUpperCase()).toBe('BERN');

    const host = setup({
      types: { context: {} as { people: number } },
      actors: { count: executor.logic(citizens) },
    }).createMachine({
      context: { people: 0 },
      initial: 'counting',
      output: ({ context }) => context.people,
      states: {
        counting: {
          invoke: {
            src: 'count',
            input: { prompt: 'Go.' },
            onDone: {
              target: 'counted',
              actions: ({ context, event }) => {
                expectTypeOf(event.output).toExtend<RunOutput<City>>();
                if (event.output.status === 'ok') context.people = event.output.data.people;
              },
            },
          },
        },
        counted: { type: 'final' },
      },
    });
    expect(await toPromise(createActor(host).start())).toBe(137_000);
  });

  test('has undefined as data without an output schema, and JSON where a plain JSON Schema tells no more', () => {
    expectTypeOf(defineAgent({ id: 'a', instructions: '' })).toEqualTypeOf<Agent<undefined>>();
    expectTypeOf(defineAgent({ id: 'a', instructions: '', output: { type: 'object' } })).toEqualTypeOf<
      Agent<JsonValue>
    >();
    expectTypeOf(defineAgent).returns.toExtend<Agent>();
  });

  test('has the type of an AI SDK schema, and what a Standard Schema gives after it has converted', () => {
    const typed = () => defineAgent({ id: 'a', instructions: '', output: schemaOfAiSdk });
    expectTypeOf(typed).returns.toEqualTypeOf<Agent<City>>();
    const lazy = () => defineAgent({ id: 'a', instructions: '', output: () => schemaOfAiSdk });
    expectTypeOf(lazy).returns.toEqualTypeOf<Agent<City>>();
    const converted = defineAgent({ id: 'a', instructions: '', output: city.transform(({ people }) => [people]) });
    expectTypeOf(converted).toEqualTypeOf<Agent<number[]>>();
  });

  test('does not compile with an output that is no schema, which is a TypeError when the agent is defined', () => {
    // @ts-expect-error a number is no schema
    expect(() => defineAgent({ id: 'a', instructions: '', output: 42 })).toThrow(TypeError);
    // @ts-expect-error nor is a text
    expect(() => defineAgent({ id: 'a', instructions: '', output: 'text' })).toThrow(/a \(output\)/);
    // @ts-expect-error nor is true
    expect(() => defineAgent({ id: 'a', instructions: '', output: true })).toThrow(TypeError);
  });

  test('fits where nothing is known of the agent: agents, runs and results of any data go together', () => {
    expectTypeOf<Agent<City>>().toExtend<Agent>();
    expectTypeOf<Agent<undefined>>().toExtend<Agent>();
    expectTypeOf<Run<City>>().toExtend<Run>();
    expectTypeOf<Run<undefined>>().toExtend<Run>();
    expectTypeOf<RunResult<City>>().toExtend<RunResult>();
    expectTypeOf<RunResult<City>>().not.toExtend<RunResult<number>>();
  });
});

describe('the code of an error', () => {
  test('is one of a known list, made of the error classes, or one of the host’s own', () => {
    expectTypeOf<'BUDGET_EXCEEDED' | 'ERR_SHUTDOWN' | 'RUN_ID_CONFLICT'>().toExtend<KnownErrorCode>();
    expectTypeOf<string>().not.toExtend<KnownErrorCode>();
    expectTypeOf<'BUDGET_EXCEDED'>().not.toExtend<KnownErrorCode>();
    expectTypeOf<'SOLD_OUT'>().toExtend<ErrorCode>();
    expectTypeOf<ErrorData['code']>().toEqualTypeOf<ErrorCode>();
  });

  test('is a literal of its own for each class, so that the list holds them all', () => {
    const classes = Object.values(errorClasses).filter((each) => each !== PawlError);
    const codes: KnownErrorCode[] = classes.map((Class) => new (Class as typeof errorClasses.ShutdownError)('').code);
    expect(new Set(codes).size).toBe(classes.length);
  });
});
