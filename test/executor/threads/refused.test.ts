import { type Message, type Middleware, memoryStore } from 'pawl';
import { callTool, fail, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, toolOf } from '../../fixtures/host.ts';
import { killsOfRetry } from './kill-sweeps.ts';
import { requestsOf, stores, textsIn, threadHost } from './thread-host.ts';

const refusal = () => fail(Object.assign(new Error('the image is too large'), { statusCode: 400, isRetryable: false }));
const png = { type: 'file', mediaType: 'image/png', data: 'A'.repeat(40) } as const;
const pay = (result: unknown = 'paid 5') => toolOf('pay', 'once', async () => result);

function talk(script: readonly ScriptedEntry[], rest: Parameters<typeof threadHost>[0] = {}) {
  const given = threadHost({ store: memoryStore(), script, ...rest });
  const { thread, ended, host } = given;
  let sent = 0;
  const say = async (message: { text: string } | { parts: readonly never[] }) => {
    sent += 1;
    const { runId } = await thread.send({ id: `m${sent}`, ...message });
    await ended(runId);
    return runId;
  };
  return { ...given, say, requests: requestsOf(host) };
}

const resultsIn = (messages: readonly Message[] = []) =>
  messages.flatMap(({ role, content }) => (role === 'tool' ? (content as { output: { value: unknown } }[]) : []));

describe.each(Object.entries(stores))('a turn whose content the provider refused, in %s', (_, store) => {
  test('stays visible as failed, and is left out of what later turns send (edges 10)', async () => {
    const { say, thread, requests, host } = talk([reply('Hi.'), refusal(), reply('Two.'), reply('Three.')], {
      store: store(),
    });
    await say({ text: 'hello' });
    const refused = await say({ parts: [{ type: 'text', text: 'look' }, png] as never });
    await say({ text: '1 + 1?' });
    await say({ text: '1 + 2?' });
    expect(textsIn(requests()[2] ?? [])).toEqual(['hello', 'Hi.', '1 + 1?']);
    expect(textsIn(requests()[3] ?? [])).toEqual(['hello', 'Hi.', '1 + 1?', 'Two.', '1 + 2?']);
    const shown = (await thread.messages()).map(({ message }) => message);
    expect(textsIn(shown)).toEqual(['hello', 'Hi.', 'look', '1 + 1?', 'Two.', '1 + 2?', 'Three.']);
    expect(await host.executor.find(refused)).toMatchObject({ outcome: { status: 'error', error: { code: 'MODEL' } } });
  });

  test('stays with the calls that it made, and the large result alone is replaced (edges 10)', async () => {
    const script = [callTool('pay', {}), callTool('read', {}), refusal(), reply('You paid.')];
    const tools = [pay(), toolOf('read', 'read', async () => 'x'.repeat(20_000))];
    const { say, requests } = talk(script, { tools, store: store() });
    await say({ text: 'pay, then read' });
    await say({ text: 'did you pay?' });
    const later = requests()[3] ?? [];
    expect(later.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool', 'user']);
    expect(resultsIn(later).map(({ output }) => output.value)).toEqual([
      'paid 5',
      '(left out: the provider refused this content)',
    ]);
  });
});

test('a turn whose middleware forgot its `return` stays in what later turns send: no provider refused it (edges 5)', async () => {
  let calls = 0;
  const model: Middleware['model'] = async (_, next) => {
    const given = await next();
    return calls++ === 0 ? (undefined as never) : given;
  };
  const { say, requests } = talk([reply('Lost.'), reply('Seven.')], { middleware: [{ model }] });
  await say({ text: 'remember 7' });
  await say({ text: 'which?' });
  expect(textsIn(requests()[1] ?? [])).toEqual(['remember 7', 'which?']);
});

test('a refused result that is not large is replaced too: else each later turn would be refused (edges 10)', async () => {
  const { say, requests } = talk([callTool('pay', {}), refusal(), reply('So.')], { tools: [pay('a forbidden word')] });
  await say({ text: 'pay' });
  await say({ text: 'and?' });
  expect(JSON.stringify(requests()[2])).not.toContain('forbidden');
  expect(JSON.stringify(requests()[2])).toContain('"toolName":"pay"');
});

test('a turn that failed for another reason stays in what later turns send (edges 10)', async () => {
  const blocked = fail(Object.assign(new Error('no key'), { statusCode: 401 }));
  const { say, requests } = talk([blocked, reply('Two.')]);
  await say({ text: 'hello' });
  await say({ text: 'again' });
  expect(textsIn(requests()[1] ?? [])).toEqual(['hello', 'again']);
});

test('two refused turns in a row are both left out, and one that is queued behind them begins (edges 10)', async () => {
  const { say, requests } = talk([refusal(), refusal(), reply('Three.')]);
  for (const text of ['one', 'two', 'three']) await say({ text });
  expect(textsIn(requests()[2] ?? [])).toEqual(['three']);
});

describe.each(Object.entries(stores))('thread.retry, in %s', (_, store) => {
  test('is one commit: a kill at any write leaves the message in its thread (edges 10)', async () => {
    await killsOfRetry(store);
  });
});

describe('thread.retry', () => {
  test('begins another run of the last message, with its files, in its place (edges 10)', async () => {
    const { say, thread, requests, ended } = talk([refusal(), reply('A dot.'), reply('Yes.')]);
    const first = await say({
      parts: [
        { type: 'text', text: 'look' },
        { ...png, filename: 'a.png' },
      ] as never,
    });
    const again = await thread.retry('m1');
    expect(again).toMatchObject({ state: 'started' });
    expect(again.runId).not.toBe(first);
    await ended(again.runId);
    expect(requests()[1]).toEqual(requests()[0]);
    const shown = (await thread.messages()).map(({ message }) => message);
    expect(textsIn(shown)).toEqual(['look', 'A dot.']);
    expect(shown[0]?.content).toMatchObject([{ type: 'text' }, { filename: 'a.png' }]);
    await say({ text: 'sure?' }).catch(() => {});
    expect(
      await thread.send({
        id: 'm1',
        parts: [
          { type: 'text', text: 'look' },
          { ...png, filename: 'a.png' },
        ],
      }),
    ).toMatchObject({
      state: 'known',
      runId: again.runId,
    });
  });

  test('begins again what was answered, as regenerate does (edges 10)', async () => {
    const { say, thread, ended } = talk([reply('One.'), reply('Another.')]);
    await say({ text: 'hello' });
    const { runId } = await thread.retry('m1');
    await ended(runId);
    expect(textsIn((await thread.messages()).map(({ message }) => message))).toEqual(['hello', 'Another.']);
  });

  test('takes what the message says now, and refuses what is no message (edges 10)', async () => {
    const { say, thread, requests, ended } = talk([reply('One.'), reply('Another.')]);
    await say({ text: 'hello' });
    await expect(thread.retry('m1', { text: ' ' })).rejects.toThrow('the message is empty');
    const { runId } = await thread.retry('m1', { text: 'bye' });
    await ended(runId);
    expect(textsIn(requests()[1] ?? [])).toEqual(['bye']);
    expect(textsIn((await thread.messages()).map(({ message }) => message))).toEqual(['bye', 'Another.']);
  });

  test('is refused beside a live run, for an unknown message and for one that is not the last (edges 10)', async () => {
    const passed = gate<string>();
    const work = toolOf('work', 'read', () => passed.pass());
    const { say, thread, ended } = talk([reply('One.'), callTool('work', {}), reply('Two.')], { tools: [work] });
    await say({ text: 'first' });
    await expect(thread.retry('m9')).rejects.toMatchObject({ code: 'THREAD_MISSING' });
    const { runId } = await thread.send({ id: 'm2', text: 'second' });
    await passed.reached;
    for (const id of ['m1', 'm2']) await expect(thread.retry(id)).rejects.toMatchObject({ code: 'THREAD_BUSY' });
    passed.open('worked');
    await ended(runId);
    await expect(thread.retry('m1')).rejects.toMatchObject({ code: 'THREAD_MISSING' });
    await expect(thread.retry(7 as never)).rejects.toMatchObject({ code: 'INVALID_THREAD_ID' });
  });
});
