import { type Middleware, memoryStore, type Run, type RunEvent, type RunResult, type Tool } from 'pawl';
import { callTool, callTools, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ofType } from '../events/listening.ts';
import { type HostOptions, hostOf, toolOf, until } from '../fixtures/host.ts';

const DAY = 86_400_000;

/** A clock, a store on it, and the processes that one after the other work with it. */
function scene() {
  const clock = testClock(1_750_000_000_000);
  const store = memoryStore({ clock });
  const boot = (tool: Tool | readonly Tool[], options: Partial<HostOptions> = {}) =>
    hostOf({ tools: [tool].flat() as Tool[], store, clock, ...options });
  return { clock, store, boot };
}

type Scene = ReturnType<typeof scene>;
type Host = ReturnType<typeof hostOf>;

async function startAndRest({ clock }: Pick<Scene, 'clock'>, host: Host): Promise<RunResult> {
  const run = await host.start({ runId: 'r' });
  let result: RunResult | undefined;
  void run.result.then((given) => {
    result = given;
  });
  // The first run of a process loads modules, in real time.
  await until(async () => {
    await clock.advance(250);
    return result;
  }, 'the rest of the run');
  return run.result;
}

/** The process ends, and another one takes up what is due. */
async function restart({ clock }: Pick<Scene, 'clock'>, before: Host, next: Host): Promise<void> {
  const ended = before.executor.shutdown();
  await clock.advance(10_000);
  await ended;
  const recovered = next.executor.recover();
  await clock.advance(5_000);
  await recovered;
}

/** The events of a run as they come. */
function heardOf(run: Run): { readonly events: RunEvent[] } {
  const events: RunEvent[] = [];
  void (async () => {
    for await (const event of run.events()) events.push(event);
  })();
  return { events };
}

const waitsOf = (result: RunResult) => (result.status === 'waiting' ? result.waits : []);
const outcomeOf = async (store: ReturnType<typeof memoryStore>) => store.outcomes.find('r');

describe('ask', () => {
  test.for(['read', 'idempotent', 'once'] as const)(
    'a %s tool asks, its run rests, and another process gives it the answer (waiting 8)',
    async (effect) => {
      const world = scene();
      const { clock, store, boot } = world;
      const begun: string[] = [];
      const toolIn = (process: string) =>
        toolOf('order', effect, async (_, context) => {
          begun.push(process);
          return `color ${await context.ask({ question: 'Which color?', options: ['red', 'blue'] })}`;
        });
      const first = boot(toolIn('first'), { script: [callTool('order', {})] });
      const [wait] = waitsOf(await startAndRest(world, first));
      expect(wait).toMatchObject({
        kind: 'question',
        question: 'Which color?',
        options: ['red', 'blue'],
        tool: 'order',
      });
      const second = boot(toolIn('second'));
      await restart(world, first, second);
      expect(begun).toEqual(['first']);
      expect(await second.executor.control('r').answer(wait?.id ?? '', 'blue')).toBe('sent');
      await clock.advance(5_000);
      expect(await outcomeOf(store)).toMatchObject({ status: 'ok', output: 'done' });
      expect(begun).toEqual(['first', 'second']);
      expect(JSON.stringify(second.model.calls[0]?.messages)).toContain('color blue');
    },
  );

  test('in one process the call runs again as well: everything before the wait is repeated', async () => {
    const { clock, boot } = scene();
    let begun = 0;
    const tool = toolOf('order', 'idempotent', async (_, context) => {
      begun += 1;
      const color = await context.ask({ question: 'Which color?' });
      return `${color} for ${await context.ask({ question: 'For whom?' })}`;
    });
    const host = boot(tool, { script: [callTool('order', {}), reply('done')] });
    const run = await host.start({ runId: 'r' });
    const heard = heardOf(run);
    for (const answer of ['red', 'Ann']) {
      await clock.advance(100);
      const wait = ofType(heard.events, 'wait.opened').at(-1)?.wait;
      await host.executor.control('r').answer(wait?.id ?? '', answer);
    }
    await clock.advance(5_000);
    expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
    expect(begun).toBe(3);
    expect(ofType(heard.events, 'tool.started')).toHaveLength(3);
    expect(ofType(heard.events, 'tool.done')).toMatchObject([{ output: { type: 'text', value: 'red for Ann' } }]);
    expect(ofType(heard.events, 'wait.answered')).toMatchObject([{ how: 'answer' }, { how: 'answer' }]);
  });

  test('the schema is kept as JSON Schema: what does not fit it is refused, and the tool gets what it makes of the answer', async () => {
    const world = scene();
    const { clock, store, boot } = world;
    const schema = z.object({ cents: z.number().int(), currency: z.string().default('EUR') });
    const got: unknown[] = [];
    const tool = toolOf('order', 'idempotent', async (_, context) => {
      got.push(await context.ask({ question: 'How much?', schema }));
      return 'ok';
    });
    const host = boot(tool, { script: [callTool('order', {}), reply('done')] });
    const run = await host.start({ runId: 'r' });
    await clock.advance(100);
    const [wait] = (await store.load('r'))?.waiting?.waits ?? [];
    expect(wait).toMatchObject({ schema: { type: 'object', required: ['cents'] } });
    const { answer } = host.executor.control('r');
    await expect(answer(wait?.id ?? '', { cents: 'many' })).rejects.toMatchObject({ code: 'ANSWER_REFUSED' });
    await answer(wait?.id ?? '', { cents: 500 });
    await clock.advance(5_000);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(got).toEqual([{ cents: 500, currency: 'EUR' }]);
  });

  test('WAIT_EXPIRED is thrown into the tool if no answer came in time, also if no process was there', async () => {
    const world = scene();
    const { clock, store, boot } = world;
    const tool = () =>
      toolOf('order', 'idempotent', async (_, context) =>
        context.ask({ question: 'Which color?', expiresInMs: 2 * DAY }).catch((error) => `no color: ${error.code}`),
      );
    const first = boot(tool(), { script: [callTool('order', {})] });
    const [wait] = waitsOf(await startAndRest(world, first));
    expect(wait?.dueAt).toBe((wait?.createdAt ?? 0) + 2 * DAY);
    const ended = first.executor.shutdown();
    await clock.advance(3 * DAY);
    await ended;
    const second = boot(tool());
    await restart(world, first, second);
    await clock.advance(5_000);
    expect(await outcomeOf(store)).toMatchObject({ status: 'ok' });
    expect(JSON.stringify(second.model.calls[0]?.messages)).toContain('no color: WAIT_EXPIRED');
  });

  test('a run without a store holds its process, and takes its answer there', async () => {
    const clock = testClock();
    const tool = toolOf('order', 'once', async (_, context) => `color ${await context.ask({ question: 'Which?' })}`);
    const host = hostOf({ tools: [tool], clock, script: [callTool('order', {}), reply('done')] });
    const run = await host.start({ runId: 'r' });
    const heard = heardOf(run);
    await clock.advance(DAY);
    const [opened] = ofType(heard.events, 'wait.opened');
    await host.executor.control('r').answer(opened?.wait.id ?? '', 'red');
    await clock.advance(100);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(JSON.stringify(host.model.calls[1]?.messages)).toContain('color red');
  });

  test('a question is redacted in records and events (waiting 13)', async () => {
    const world = scene();
    const tool = toolOf('order', 'idempotent', (_, context) =>
      context.ask({ question: 'Is s3cret right?', options: ['s3cret', 'no'] }),
    );
    const redact = (text: string) => text.replaceAll('s3cret', '***');
    const host = world.boot(tool, { script: [callTool('order', {})], redact });
    const run = await host.start({ runId: 'r' });
    const heard = heardOf(run);
    await world.clock.advance(5_000);
    await run.result;
    const record = await world.store.load('r');
    expect(record?.waiting?.waits).toMatchObject([{ question: 'Is *** right?', options: ['***', 'no'] }]);
    expect(JSON.stringify(heard.events)).not.toContain('s3cret');
  });
});

describe('sleep', () => {
  test("`sleep('30d')` over two restarts: the run holds no process, and wakes in time (waiting 37)", async () => {
    const world = scene();
    const { clock, store, boot } = world;
    const begun: number[] = [];
    const from = clock.now();
    const tool = () =>
      toolOf('remind', 'once', async (_, context) => {
        await context.sleep('30d');
        begun.push(clock.now() - from);
        return 'woke';
      });
    const seldom = { defaults: { dueMs: DAY / 24 } };
    const first = boot(tool(), { script: [callTool('remind', {})], ...seldom });
    const result = await startAndRest(world, first);
    expect(result).toMatchObject({ status: 'waiting', waits: [{ kind: 'timer' }] });
    const second = boot(tool(), { script: [], ...seldom });
    await clock.advance(10 * DAY);
    await restart(world, first, second);
    await clock.advance(10 * DAY);
    const third = boot(tool(), seldom);
    await restart(world, second, third);
    expect([await store.due.countResting(), begun]).toEqual([1, []]);
    await clock.advance(10 * DAY + DAY / 6);
    expect(await outcomeOf(store)).toMatchObject({ status: 'ok', output: 'done' });
    expect(begun).toHaveLength(1);
    expect(begun[0]).toBeGreaterThanOrEqual(30 * DAY);
    expect(begun[0]).toBeLessThan(30 * DAY + DAY / 12);
  });

  test('`wake` ends it early', async () => {
    const { clock, boot } = scene();
    const tool = toolOf('remind', 'once', async (_, context) => `woke ${await context.sleep('30d')}`);
    const host = boot(tool, { script: [callTool('remind', {}), reply('done')] });
    const run = await host.start({ runId: 'r' });
    await clock.advance(100);
    await host.executor.control('r').wake();
    await clock.advance(100);
    expect(await run.result).toMatchObject({ status: 'ok' });
  });

  test('`sleepUntil` a time that is over ends at once', async () => {
    const { clock, boot } = scene();
    const tool = toolOf('remind', 'once', async (_, context) => `woke ${await context.sleepUntil(0)}`);
    const host = boot(tool, { script: [callTool('remind', {}), reply('done')] });
    const run = await host.start({ runId: 'r' });
    await clock.advance(500);
    expect(await run.result).toMatchObject({ status: 'ok' });
  });

  test('a time beyond all dates is kept as the last date', async () => {
    const world = scene();
    const tool = toolOf('remind', 'once', async (_, context) => context.sleep(8.64e15));
    const [wait] = waitsOf(await startAndRest(world, world.boot(tool, { script: [callTool('remind', {})] })));
    expect(new Date(wait?.dueAt ?? 0).toISOString()).toBe('+275760-09-13T00:00:00.000Z');
  });
});

describe('the rules over restarts', () => {
  test('a deploy that lets the call ask for something else gives it WAIT_CHANGED (waiting 8)', async () => {
    const world = scene();
    const { clock, store, boot } = world;
    const before = toolOf('order', 'idempotent', async (_, context) => context.ask({ question: 'Which color?' }));
    const after = toolOf('order', 'idempotent', async (_, context) => context.sleep('1d'));
    const first = boot(before, { script: [callTool('order', {})] });
    const [wait] = waitsOf(await startAndRest(world, first));
    const second = boot(after);
    await restart(world, first, second);
    await second.executor.control('r').answer(wait?.id ?? '', 'red');
    await clock.advance(5_000);
    expect(await outcomeOf(store)).toMatchObject({ status: 'ok' });
    expect(JSON.stringify(second.model.calls[0]?.messages)).toContain(
      'now waits for a time where it waited for an answer',
    );
  });

  test('a `once` tool has its effect once: a process that dies after the answer does not repeat it (waiting 9)', async () => {
    const world = scene();
    const { clock, store, boot } = world;
    const paid: string[] = [];
    const toolIn = (process: string, hangs: boolean) =>
      toolOf('pay', 'once', async (_, context) => {
        await context.ask({ question: 'Pay?' });
        paid.push(process);
        if (hangs) await new Promise(() => {});
        return 'paid';
      });
    const first = boot(toolIn('first', true), { script: [callTool('pay', {})] });
    const run = await first.start({ runId: 'r' });
    await clock.advance(100);
    const [wait] = (await store.load('r'))?.waiting?.waits ?? [];
    await first.executor.control('r').answer(wait?.id ?? '', 'yes');
    await clock.advance(100);
    expect(paid).toEqual(['first']);
    // The process dies: its lease runs out.
    const dead = (await store.load('r')) as never;
    const copy = memoryStore({ clock });
    await copy.save(dead);
    const second = hostOf({ tools: [toolIn('second', false)], store: copy, clock });
    const recovered = second.executor.recover();
    await clock.advance(5_000);
    await recovered;
    expect(await copy.outcomes.find('r')).toMatchObject({ status: 'ok' });
    expect(paid).toEqual(['first']);
    expect(JSON.stringify(second.model.calls[0]?.messages)).toContain('Outcome unknown');
    void run;
  });

  test('the attempt of a `once` call that asked is not counted twice', async () => {
    const { clock, store, boot } = scene();
    const attempts: number[] = [];
    const tool = toolOf('pay', 'once', async (_, context) => {
      attempts.push(context.attempt);
      await context.ask({ question: 'Pay?' });
      return 'paid';
    });
    const host = boot(tool, { script: [callTool('pay', {}), reply('done')] });
    const run = await host.start({ runId: 'r' });
    await clock.advance(100);
    const [wait] = (await store.load('r'))?.waiting?.waits ?? [];
    await host.executor.control('r').answer(wait?.id ?? '', 'yes');
    await clock.advance(100);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(attempts).toEqual([1, 1]);
  });

  test('the other calls of the message run, and a call that waits takes no place of theirs (waiting 3)', async () => {
    const { clock, boot } = scene();
    const ended: unknown[] = [];
    const tool = toolOf('work', 'idempotent', async ({ n }, context) => {
      if (n === 0) await context.ask({ question: 'Well?' });
      ended.push(n);
      return 'ok';
    });
    const calls = [0, 1, 2, 3].map((n) => ['work', { n }] as const);
    const host = boot(tool, {
      script: [callTools(calls.map(([name, input]) => ({ name, input })) as never), reply('done')],
      defaults: { toolConcurrency: 1 },
    });
    const run = await host.start({ runId: 'r' });
    const heard = heardOf(run);
    await clock.advance(100);
    expect(ended).toEqual([1, 2, 3]);
    const [opened] = ofType(heard.events, 'wait.opened');
    await host.executor.control('r').answer(opened?.wait.id ?? '', 'well');
    await clock.advance(100);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(ended).toEqual([1, 2, 3, 0]);
  });

  test('a run whose waiting call has a redacted input stays in its process (waiting 14)', async () => {
    const { clock, store, boot } = scene();
    const got: unknown[] = [];
    const tool = toolOf('order', 'idempotent', async (input, context) => {
      await context.ask({ question: 'Well?' });
      got.push(input);
      return 'ordered';
    });
    const redact = (text: string) => text.replaceAll('s3cret', '***');
    const host = boot(tool, { script: [callTool('order', { card: 's3cret' }), reply('done')], redact });
    const run = await host.start({ runId: 'r' });
    const heard = heardOf(run);
    await clock.advance(60_000);
    expect(await store.due.countResting()).toBe(0);
    const [opened] = ofType(heard.events, 'wait.opened');
    await host.executor.control('r').answer(opened?.wait.id ?? '', 'well');
    await clock.advance(100);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(got).toEqual([{ card: 's3cret' }]);
  });

  test('after a crash such a call ends as lost, and the model reads that (waiting 14)', async () => {
    const { clock, store, boot } = scene();
    let begun = 0;
    const tool = toolOf('order', 'idempotent', async (_, context) => {
      begun += 1;
      return context.ask({ question: 'Well?' });
    });
    const redact = (text: string) => text.replaceAll('s3cret', '***');
    const first = boot(tool, { script: [callTool('order', { card: 's3cret' })], redact });
    await first.start({ runId: 'r' });
    await clock.advance(5_000);
    // The process dies: the record alone is left.
    const copy = memoryStore({ clock });
    await copy.save((await store.load('r')) as never);
    const second = boot(tool, { store: copy, redact });
    const recovered = second.executor.recover();
    await clock.advance(5_000);
    await recovered;
    expect(await copy.outcomes.find('r')).toMatchObject({ status: 'ok', output: 'done' });
    expect(JSON.stringify(second.model.calls[0]?.messages)).toContain('its arguments are not in the record');
    expect(begun).toBe(1);
  });

  test('a middleware around the tool runs each time, and `next()` does not return while the call waits', async () => {
    const { clock, store, boot } = scene();
    const seen: string[] = [];
    const middleware: Middleware = {
      async tool({ name }, next) {
        seen.push(`before ${name}`);
        try {
          const output = await next();
          seen.push('after');
          return output;
        } finally {
          seen.push('finally');
        }
      },
    };
    const tool = toolOf('order', 'once', async (_, context) => `color ${await context.ask({ question: 'Which?' })}`);
    const script = [callTool('order', {}), reply('done')];
    const host = boot(tool, { script, middleware: [middleware], defaults: { waitLingerMs: DAY } });
    const run = await host.start({ runId: 'r' });
    await clock.advance(60_000);
    expect(seen).toEqual(['before order']);
    const [wait] = (await store.load('r'))?.waiting?.waits ?? [];
    await host.executor.control('r').answer(wait?.id ?? '', 'red');
    await clock.advance(100);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(seen).toEqual(['before order', 'before order', 'after', 'finally']);
  });

  test('a cancel ends a run that waits, and its call does not run again', async () => {
    const { clock, store, boot } = scene();
    let begun = 0;
    const tool = toolOf('order', 'idempotent', async (_, context) => {
      begun += 1;
      return context.ask({ question: 'Well?' });
    });
    const host = boot(tool, { script: [callTool('order', {})] });
    const run = await host.start({ runId: 'r' });
    await clock.advance(100);
    await run.cancel('changed my mind');
    await clock.advance(5_000);
    expect(await run.result).toMatchObject({ status: 'cancelled' });
    expect([begun, await store.load('r')]).toEqual([1, null]);
  });

  test('a tool that catches WAIT_EXPIRED and asks in a loop has a wait for each turn of it', async () => {
    const { clock, store, boot } = scene();
    const tool = toolOf('nag', 'idempotent', async (_, context) => {
      for (let n = 1; ; n++) {
        const answer = await context.ask({ question: `Well (${n})?`, expiresInMs: 1_000 }).catch(() => undefined);
        if (answer !== undefined) return `asked ${n} times`;
      }
    });
    const host = boot(tool, { script: [callTool('nag', {}), reply('done')], defaults: { waitLingerMs: DAY } });
    const run = await host.start({ runId: 'r' });
    await clock.advance(3_500);
    const [wait] = (await store.load('r'))?.waiting?.waits ?? [];
    expect(wait).toMatchObject({ question: 'Well (4)?' });
    await host.executor.control('r').answer(wait?.id ?? '', 'yes');
    await clock.advance(100);
    expect(await run.result).toMatchObject({ status: 'ok' });
    expect(JSON.stringify(host.model.calls[1]?.messages)).toContain('asked 4 times');
  });
});
