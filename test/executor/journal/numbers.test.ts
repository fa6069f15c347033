import { readFileSync } from 'node:fs';
import { memoryStore, type RunEvent } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';

/** The events that the page names as those that a save itself tells. */
const [, sentence = ''] =
  /event log before the process publishes them: (.*)\.\n/.exec(readFileSync('docs/events.md', 'utf8')) ?? [];
const ofSave = [...sentence.matchAll(/`([a-z.]+)`/g)].map(([, type]) => type);

test('an event has one number in the handle and in the event log, but for those that docs/events.md names (edges, small)', async () => {
  const store = memoryStore();
  const seen: RunEvent[] = [];
  const ask = toolOf('ask', 'once', (_, context) => context.ask({ question: 'Which?' }));
  const pay = { ...toolOf('pay', 'once'), needsApproval: true };
  const host = hostOf({
    ...{ store, tools: [ask, pay], journal: { flushMs: 1 } },
    script: [callTool('pay', {}), callTool('ask', {}), reply('done')],
    observers: [{ onEvent: (event) => void seen.push(event) }],
  });
  const run = await host.start({ runId: 'r' });
  const opened = async (kind: string) => {
    const isIt = (event: RunEvent) => event.type === 'wait.opened' && event.wait.kind === kind;
    await until(() => seen.some(isIt));
    return (seen.find(isIt) as Extract<RunEvent, { type: 'wait.opened' }>).wait.id;
  };
  await host.executor.control('r').approve(await opened('approval'));
  await host.executor.control('r').answer(await opened('question'), 'red');
  expect((await run.result).status).toBe('ok');

  const page = await store.journal.read('r', { after: 0, limit: 1_000 });
  const entries = page?.entries.map(({ event }) => event) ?? [];
  const numbers = (events: readonly { readonly type: string; readonly seq: number }[], type: string) =>
    events.filter((event) => event.type === type).map(({ seq }) => seq);
  // What is in the log alone has no other number.
  const types = [...new Set(entries.map(({ type }) => type))].filter((type) => numbers(seen, type).length > 0);
  const others = types.filter((type) => String(numbers(entries, type)) !== String(numbers(seen, type)));
  expect(types).toEqual(
    expect.arrayContaining(['run.started', 'step.done', 'tool.done', 'wait.answered', 'run.ended']),
  );
  expect(others.length).toBeGreaterThan(3);
  expect(others.filter((type) => !ofSave.includes(type))).toEqual([]);
  expect(ofSave).toEqual(expect.arrayContaining(others));
});
