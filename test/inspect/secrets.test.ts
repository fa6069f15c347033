import { hang, reply } from 'pawl/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { until } from '../fixtures/host.ts';
import { reachable } from './frames.ts';
import { leaksIn, requestError, secret, secretiveHost, secretiveOptions } from './secrets.ts';

function hostForTest(script?: Parameters<typeof secretiveHost>[0]) {
  const host = secretiveHost(script);
  onTestFinished(() => host.close());
  vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(() => void vi.restoreAllMocks());
  const invocation = { prompt: 'Go.', apiKey: secret('the invocation'), headers: { a: secret('its headers') } };
  const caller = new AbortController();
  const start = () => host.executor.start(host.agent, invocation, secretiveOptions(caller.signal));
  return { ...host, start, caller };
}

/** Where the secrets of a run were seen, by the way in which they got out. */
async function leaksOf(host: ReturnType<typeof hostForTest>, run: Awaited<ReturnType<typeof host.start>>) {
  const events: string[] = [];
  for await (const event of run.events()) events.push(JSON.stringify(event));
  return {
    frames: leaksIn(host.seen.frames),
    'inspection events, walked': leaksIn(reachable(host.seen.events)),
    files: leaksIn(host.files()),
    log: leaksIn(host.log),
    events: leaksIn(events),
    snapshot: leaksIn([JSON.stringify(run.actor.getPersistedSnapshot())]),
    result: leaksIn([JSON.stringify(await run.result)]),
  };
}

const none = { frames: [], 'inspection events, walked': [], files: [], log: [], events: [], snapshot: [], result: [] };

describe('what a host keeps in its ports, keys, headers and options', () => {
  test('is in no frame of an inspector, file of the store, line of the log, event or result (architecture 9)', async () => {
    const host = hostForTest();
    const run = await host.start();
    expect(await run.result).toMatchObject({ status: 'ok', durable: true });
    expect(await leaksOf(host, run)).toEqual(none);
    const log = host.log.join();
    for (const said of ['onStep threw', 'checkpoint save failed']) expect(log).toContain(said);
    expect(host.model.calls).toHaveLength(4);
    expect(host.seen.actors.filter((id) => id.startsWith('tool.'))).toHaveLength(5);
  });

  test('is in none while the run is under way either (architecture 9)', async () => {
    const host = hostForTest([hang()]);
    const run = await host.start();
    await until(() => host.model.calls.length === 1);
    expect(leaksIn(host.files())).toEqual([]);
    expect(leaksIn([JSON.stringify(run.actor.getPersistedSnapshot())])).toEqual([]);
    await run.cancel();
  });

  test('is in none when the model fails for good with its whole request in the error (architecture 9)', async () => {
    const host = hostForTest([{ type: 'fail', error: requestError('the last error of the model') }]);
    const run = await host.start();
    expect(await run.result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(await leaksOf(host, run)).toEqual(none);
  });

  test('is in none when the caller aborts with a reason that holds some (architecture 9)', async () => {
    const host = hostForTest([hang()]);
    const run = await host.start();
    await until(() => host.model.calls.length === 1);
    host.caller.abort(requestError('the reason of the signal'));
    expect(await run.result).toMatchObject({ status: 'cancelled' });
    expect(await leaksOf(host, run)).toEqual(none);
  });

  test('would be found: what is in the prompt is in frames and files', async () => {
    const host = hostForTest([reply(secret('an answer')), hang()]);
    const run = await host.executor.start(host.agent, { prompt: secret('a prompt') });
    await run.result;
    expect(leaksIn(host.seen.frames)).toEqual(['a prompt', 'an answer']);
    expect(leaksIn(reachable(host.seen.events))).toEqual(expect.arrayContaining(['a prompt', 'an answer']));
    expect(leaksIn(host.files())).toContain('a prompt');
  });
});
