import { createPalette, defineAgent, defineTool, memoryStore, type Tool } from 'pawl';
import { callTool, callTools, fail, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { metricTable } from '../../src/otel/metric-table.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash } from '../fixtures/watched-store.ts';
import { collecting } from './spans.ts';

/** The lines of a list, each once, in order. */
const sorted = (lines: readonly string[]) => [...new Set(lines)].toSorted();
const keysOf = (attributes: object | undefined) => Object.keys(attributes ?? {}).toSorted();

test('spans, events, links and metrics have the names and attributes of golden.txt: a change of a convention is one diff (otel 10, 11, 36)', async () => {
  const collected = collecting();
  const store = memoryStore();
  const sign = defineTool({
    ...{ name: 'sign', description: 'Signs.', effect: 'once' as const, needsApproval: true },
    ...{ input: { type: 'object' }, execute: () => 'signed' },
  }) as unknown as Tool;
  const broken = toolOf('broken', 'read', () => Promise.reject(new Error('no')));
  const stuck = toolOf('stuck', 'idempotent', () => new Promise(() => {}));
  const helper = defineAgent({ id: 'helper', instructions: 'Help.', tools: [sign] });
  const options = {
    ...{ tools: [broken, sign], ports: { palette: createPalette({ agents: [helper] }) } },
    ...{ agent: { subAgents: ['helper'] }, random: () => 0, defaults: { waitLingerMs: 1 } },
  };
  const ask = callTools([{ name: 'agent__helper', input: { prompt: 'Help.' }, callId: 'ask' }]);
  const script = [fail(new Error('overloaded')), callTool('broken'), ask, reply('helped'), callTool('sign')];
  const waiting = hostOf({ ...options, script, store, tracing: collected.process({ content: true }) });
  expect((await waiting.run({ runId: 'a' })).status).toBe('waiting');
  await waiting.executor.shutdown();
  const [wait] = await waiting.executor.waiting();
  const tracing = collected.process({ content: true });
  const approved = hostOf({ ...options, store, script: [reply('end')], tracing });
  await approved.executor.control('a').approve(wait?.id ?? '', { by: { id: 'ada' } });
  expect((await approved.run({ runId: 'a' })).status).toBe('ok');
  const life = { isDead: false };
  const lost = memoryStore();
  const dying = hostOf({
    tools: [stuck],
    script: [callTool('stuck')],
    store: lost,
    tracing: collected.process({}, life),
  });
  await dying.start({ runId: 'b' });
  await until(async () => (await lost.load('b'))?.openStep?.calls[0]?.state === 'started');
  life.isDead = true;
  const next = { tools: [toolOf('stuck', 'idempotent')], script: [reply('end')], store: await afterCrash(lost) };
  expect((await hostOf({ ...next, tracing }).run({ runId: 'b' })).status).toBe('ok');
  const paid = { isDead: false };
  const unsure = memoryStore();
  const paying = hostOf({
    tools: [toolOf('pay', 'once', () => new Promise(() => {}))],
    script: [callTool('pay')],
    store: unsure,
    tracing: collected.process({}, paid),
  });
  await paying.start({ runId: 'c' });
  await until(async () => (await unsure.load('c'))?.openStep?.calls[0]?.state === 'started');
  paid.isDead = true;
  const parking = {
    tools: [toolOf('pay', 'once')],
    store: await afterCrash(unsure),
    onUnknownOutcome: 'park',
  } as const;
  expect((await hostOf({ ...parking, tracing }).run({ runId: 'c' })).error?.code).toBe('RUN_PARKED');
  const spans = collected.spans();
  const lines = [
    '# spans: attributes of all of a name',
    ...sorted(spans.map(({ name }) => name.split(' ')[0] ?? '')).flatMap((operation) => {
      const own = spans.filter(({ name }) => name.startsWith(operation));
      return [operation, ...sorted(own.flatMap(({ attributes }) => keysOf(attributes))).map((key) => `  ${key}`)];
    }),
    '# events',
    ...sorted(
      spans.flatMap(({ events }) => events.map(({ name, attributes }) => `${name}: ${keysOf(attributes).join(', ')}`)),
    ),
    '# links',
    ...sorted(spans.flatMap(({ links }) => links.map(({ attributes }) => keysOf(attributes).join(', ')))),
    '# metrics: kind, unit, attributes',
    ...Object.entries(metricTable).map(
      ([name, { kind, unit, attributes }]) => `${name}: ${kind}, ${unit}, ${attributes.join(', ')}`,
    ),
  ];
  await expect(`${lines.map((line) => line.trimEnd()).join('\n')}\n`).toMatchFileSnapshot('golden.txt');
});
