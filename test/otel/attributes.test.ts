import { memoryStore } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';
import { measuring } from './measuring.ts';
import { type Collected, collecting } from './spans.ts';

type Options = NonNullable<Parameters<Collected['process']>[0]>;

const attemptsOf = (collected: Collected) =>
  collected
    .spans()
    .filter(({ name }) => name.startsWith('invoke_agent'))
    .map(({ attributes }) => attributes);

describe('attributes', () => {
  test('are on the spans of all attempts of a run, also of one that its successor tells, and on no metric (otel 13, 16)', async () => {
    const collected = collecting();
    const { provider: meterProvider, read } = measuring();
    const options: Options = {
      ...{ metrics: true, meterProvider },
      attributes: ({ info }) => ({ 'app.tenant': info.labels?.tenant, 'app.vip': true, 'app.size': 3 }),
    };
    const store = memoryStore();
    const tools = [toolOf('look')];
    const life = { isDead: false };
    const tracing = collected.process(options, life);
    const first = hostOf({ script: [callTool('look'), hang()], tools, store, tracing });
    await first.start({ runId: 'a', labels: { tenant: 'acme' } });
    await until(async () => (await store.load('a'))?.iteration === 1);
    life.isDead = true;
    const next = hostOf({
      ...{ script: [reply('end')], tools, store: await afterCrash(store) },
      tracing: collected.process(options),
    });
    await next.executor.recover();
    await until(() => attemptsOf(collected).length === 2);
    for (const attributes of attemptsOf(collected))
      expect(attributes).toMatchObject({ 'app.tenant': 'acme', 'app.vip': true, 'app.size': 3 });
    expect(JSON.stringify((await read()).points)).not.toContain('app.');
  });

  test.for<[string, () => unknown, object]>([
    ['that throws', () => JSON.parse('{'), {}],
    ['that returns a promise', () => Promise.reject(new Error('later')), {}],
    ['that returns a text', () => 'tenant', {}],
    [
      'that returns nonsense',
      () => ({ ok: 'yes', nan: Number.NaN, list: [1], none: undefined, '': 'x', big: 1n }),
      { ok: 'yes' },
    ],
    ['that takes names of Pawl', () => ({ 'pawl.run.id': 'b', 'pawl.attempt.lost': true, 'error.type': 'x' }), {}],
    ['that gives long texts', () => ({ long: `\n${'x'.repeat(1_000)}` }), { long: ` ${'x'.repeat(255)}` }],
    [
      'that gives many',
      () => Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`n${i}`, i])),
      Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`n${i}`, i])),
    ],
  ])('%s change no run, and nothing that Pawl says (otel 13, 25)', async ([, attributes, kept]) => {
    const plain = collecting();
    const collected = collecting();
    const tracing = collected.process({ attributes: attributes as Exclude<Options['attributes'], undefined> });
    const hosts = [hostOf({ tracing: plain.process() }), hostOf({ tracing })];
    for (const host of hosts) expect(await host.run({ runId: 'a' })).toMatchObject({ status: 'ok' });
    await settle();
    expect(attemptsOf(collected)).toEqual([{ ...attemptsOf(plain)[0], ...kept }]);
  });

  test('of an attempt that throw are one warning (otel 25)', async () => {
    const attributes = () => JSON.parse('{');
    const host = hostOf({ tracing: collecting().process({ attributes }) });
    await host.run();
    expect(host.warnings).toEqual(['run: attributes of openTelemetry threw']);
  });

  test('that are no function are refused (otel 27)', () => {
    expect(() => collecting().process({ attributes: {} as never })).toThrow('attributes must be a function');
  });
});
