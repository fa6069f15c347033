import { hang, reply } from 'pawl/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { InspectionEvent } from 'xstate';
import { newOwner } from '../../src/store/owner.ts';
import { until } from '../fixtures/host.ts';
import { startClient } from './client.ts';
import { reachable } from './search.ts';
import { leaksIn, requestError, secret, secretiveHost, secretiveOptions } from './secrets.ts';

/** This machine and process, as claims name them; what follows is made anew for each executor. */
const owner = newOwner().split('|').slice(0, -1).join('|');

async function hostForTest(script?: Parameters<typeof secretiveHost>[1]) {
  const client = await startClient();
  const host = secretiveHost(client.observer, script);
  onTestFinished(() => host.close());
  const heard: InspectionEvent[] = [];
  const invocation = { prompt: 'Go.', [Symbol('kept by the host')]: { apiKey: secret('the invocation') } };
  const caller = new AbortController();
  const options = secretiveOptions(caller.signal, (event) => void heard.push(event));
  const start = () => host.executor.start(host.agent, invocation, options);
  return { ...host, client, heard, start, caller };
}

/** Where the secrets of a run were seen, by the way in which they got out. */
async function leaksOf(host: Awaited<ReturnType<typeof hostForTest>>, run: Awaited<ReturnType<typeof host.start>>) {
  const events: string[] = [];
  for await (const event of run.events()) events.push(JSON.stringify(event));
  await host.client.arrived();
  expect(host.client.frames.length).toBeGreaterThan(10);
  // Some events name the owner in a field of that name, for the history of a run.
  const without = events.map((text) => JSON.stringify({ ...JSON.parse(text), owner: '' }));
  const said = [...host.client.frames, ...host.log, ...without];
  return {
    frames: leaksIn(host.client.frames),
    'inspection events, walked': leaksIn(reachable(host.heard)),
    files: leaksIn(host.files()),
    log: leaksIn(host.log),
    events: leaksIn(events),
    snapshot: leaksIn([JSON.stringify(run.actor.getPersistedSnapshot())]),
    result: leaksIn([JSON.stringify(await run.result)]),
    owner: said.filter((text) => text.includes(owner)),
  };
}

const none = {
  frames: [],
  'inspection events, walked': [],
  files: [],
  log: [],
  events: [],
  snapshot: [],
  result: [],
  owner: [],
};

describe('what a host keeps in its ports, keys, headers and options', () => {
  test('is in no frame of an inspector, file of the store, line of the log, event or result (architecture 9)', async () => {
    const host = await hostForTest();
    const run = await host.start();
    expect(await run.result).toMatchObject({ status: 'ok', durable: true });
    expect(await leaksOf(host, run)).toEqual(none);
    const log = host.log.join();
    const failed = ['onStep threw', 'inspect threw', 'the port ids returned no valid run id', 'checkpoint save failed'];
    for (const said of failed) expect(log).toContain(said);
    expect(host.model.calls).toHaveLength(4);
    expect(host.client.actors.filter((id) => id.startsWith('tool.'))).toHaveLength(5);
  });

  test('is in none while the run is under way either (architecture 9)', async () => {
    const host = await hostForTest([hang()]);
    const run = await host.start();
    await until(() => host.model.calls.length === 1);
    await host.client.arrived();
    expect(leaksIn([...host.client.frames, ...host.files(), ...host.log])).toEqual([]);
    expect(leaksIn([JSON.stringify(run.actor.getPersistedSnapshot())])).toEqual([]);
    expect(host.files().join('')).toContain(owner);
    await run.cancel();
  });

  test('is in none when the model fails for good with its whole request in the error (architecture 9)', async () => {
    const host = await hostForTest([{ type: 'fail', error: requestError('the last error of the model') }]);
    const run = await host.start();
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(await leaksOf(host, run)).toEqual(none);
  });

  test('is in none when the caller aborts with a reason that holds some (architecture 9)', async () => {
    const host = await hostForTest([hang()]);
    const run = await host.start();
    await until(() => host.model.calls.length === 1);
    host.caller.abort(requestError('the reason of the signal'));
    expect(await run.result).toMatchObject({ status: 'cancelled' });
    expect(await leaksOf(host, run)).toEqual(none);
  });

  test('would be found: prompt and answer, which are the run’s own, are in frames; prompt and inputs in files', async () => {
    const host = await hostForTest([reply(secret('an answer'))]);
    const invocation = { prompt: secret('a prompt'), inputs: { ticket: secret('an input') } };
    const { signal } = new AbortController();
    const options = secretiveOptions(signal, (event) => void host.heard.push(event));
    const run = await host.executor.start(host.agent, invocation, options);
    await run.result;
    const leaks = await leaksOf(host, run);
    const own = ['a prompt', 'an answer'];
    expect(leaks.frames).toEqual(own);
    expect(leaks['inspection events, walked']).toEqual(expect.arrayContaining(own));
    expect(leaks.files).toEqual(expect.arrayContaining(['a prompt', 'an input']));
    expect(leaks.log).toEqual([]);
  });
});
