import { memoryStore } from 'pawl';
import { callTool, fail, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { webHost } from './web-host.ts';

const refused = fail(Object.assign(new Error('the account is closed'), { statusCode: 400 }));

async function failed() {
  const did: string[] = [];
  const pay = toolOf('pay', 'once', () => void did.push('paid'));
  const host = webHost({ tools: [pay], script: [callTool('pay'), refused, reply('all is paid')] });
  const { runId } = (await host.ask('/runs', { body: { agent: 'worker', prompt: 'Pay.' } })).body;
  const path = `/runs/${runId}`;
  await until(async () => (await host.ask(path)).body.state === 'fail');
  return { host, path, did };
}

describe('POST /runs/:runId/retry', () => {
  test('continues a run of the caller that ended badly, and its events continue to one end (lab 4, 5)', async () => {
    const { host, path, did } = await failed();
    expect((await host.ask(`${path}/retry`, { as: 'bob', body: {} })).status).toBe(404);
    const sent = await host.ask(`${path}/retry`, { body: {} });
    expect(sent).toMatchObject({ status: 202, body: { state: 'live' } });
    const { body } = await host.ask(`${path}/events`);
    expect(body.match(/"by":\{[^}]*\}/g)).toEqual(['"by":{"id":"ada"}']);
    expect(body.match(/"type":"run\.\w+"/g)?.slice(1)).toEqual([
      '"type":"run.retried"',
      '"type":"run.resumed"',
      '"type":"run.ended"',
    ]);
    expect((await host.ask(path)).body).toMatchObject({ state: 'ok', result: { output: 'all is paid' } });
    expect(did).toEqual(['paid']);
    const again = await host.ask(`${path}/retry`, { body: {} });
    expect(again).toMatchObject({ status: 409, body: { code: 'RUN_ENDED' } });
  });

  test('makes the run due where the server does not have its agent (lab 6)', async () => {
    const store = memoryStore();
    await hostOf({ store, agent: { id: 'other' }, script: [refused] }).run({ runId: 'r', callerId: 'ada' });
    const host = webHost({ store });
    expect(await host.ask('/runs/r/retry', { body: {} })).toMatchObject({ status: 202, body: { state: 'due' } });
    expect((await store.due.list({ limit: 9 })).runs.map(({ runId }) => runId)).toEqual(['r']);
  });
});
