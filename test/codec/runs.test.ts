import { cpSync } from 'node:fs';
import { dirname } from 'node:path';
import { encrypt, type InterruptedRun } from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { sampleRecord, userMessage } from '../../src/testing/store-contract/records.ts';
import { until } from '../fixtures/host.ts';
import { expectSameRecords } from '../fixtures/pinned-ends.ts';
import { leaveRuns, PINNED_AT, pinnedHost, saidInRuns } from '../fixtures/pinned-runs.ts';

import { bytesOf, type DurableStore, type Kind, kinds } from './encrypted-stores.ts';
import { codecOf, first, second } from './keys.ts';

const runIds = ['effects', 'parent', 'pipeline', 'single', 'told'];

const left = new Map<string, Promise<string>>();

/** What a process leaves whose store has this codec, for the test alone: a copy, because it is always the same. */
async function leftWith(kind: Kind, codec?: ReturnType<typeof codecOf>): Promise<string> {
  const leave = async () => {
    const path = kind.fresh();
    await leaveRuns(kind.open(path, codec, testClock(PINNED_AT)));
    return path;
  };
  const of = `${kind.name}, ${codec ? 'encrypted' : 'plain'}`;
  const original = left.get(of) ?? leave();
  left.set(of, original);
  const path = kind.fresh();
  cpSync(dirname(await original), dirname(path), { recursive: true });
  return path;
}

/** Lets all runs go on to their ends. */
async function goOn(store: DurableStore): Promise<readonly string[]> {
  const { executor } = pinnedHost(store, 'next');
  const { resumed } = await executor.recover();
  await until(async () => (await store.listInterrupted()).length === 0, 'the end of the runs');
  await executor.shutdown();
  return resumed.map(({ runId }) => runId).sort();
}

const reasonsOf = (listed: readonly InterruptedRun[]) =>
  new Set(listed.map((run) => (run.status === 'quarantined' ? run.reason.split(' of ')[0] : run.status)));

const countOf = (bytes: string) => saidInRuns.filter((words) => bytes.includes(words)).length;

describe.for(kinds)('runs on an encrypted $name store (recovery 11)', (kind) => {
  test('leave nothing there that was typed, said, sent or received; without the codec all of it is there', async () => {
    expect(countOf(bytesOf(await leftWith(kind)))).toBeGreaterThan(saidInRuns.length - 3);
    const path = await leftWith(kind, codecOf());
    expect(saidInRuns.filter((words) => bytesOf(path).includes(words))).toEqual([]);
    expect(bytesOf(path)).toContain('gcm1.first.');
  });

  test('leave records that read as all others', async () => {
    const store = kind.open(await leftWith(kind, codecOf()), codecOf());
    await expectSameRecords(store, 2);
    await store.close();
  });

  test('continue after a crash, and leave nothing either when they have ended', async () => {
    const path = await leftWith(kind, codecOf());
    const store = kind.open(path, codecOf());
    expect(await goOn(store)).toEqual(runIds);
    expect(await store.outcomes.find('single')).toMatchObject({ output: 'Find it. done' });
    await store.close();
    expect(saidInRuns.filter((words) => bytesOf(path).includes(words))).toEqual([]);
  });

  test.for([
    ['another key', encrypt({ keys: second, current: 'second' }), 'the key first,'],
    ['no codec', undefined, 'give the store the codec'],
  ] as const)('are not touched by a process with %s, and continue in one that has the key', async ([, codec, says]) => {
    const path = await leftWith(kind, codecOf());
    const stranger = kind.open(path, codec);
    const mismatch = { code: 'KEY_MISMATCH', message: expect.stringContaining(says) };
    await expect(stranger.load('single')).rejects.toMatchObject(mismatch);
    await expect(stranger.outcomes.find('kept')).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
    expect(reasonsOf(await stranger.listInterrupted())).toEqual(new Set(['KEY_MISMATCH: the meta']));
    const { executor } = pinnedHost(stranger, 'next');
    expect((await executor.recover()).resumed).toEqual([]);
    await executor.shutdown();
    await stranger.close();

    const store = kind.open(path, codecOf());
    expect(await goOn(store)).toEqual(runIds);
    await store.close();
  });

  test.for([
    ['another key', encrypt({ keys: second, current: 'second' })],
    ['no codec', undefined],
  ] as const)(
    'are not told anything by a process with %s, be it at work or not: it is refused, and nothing of it is stored',
    async ([, codec]) => {
      const path = await leftWith(kind, codecOf());
      const store = kind.open(path, codecOf());
      const stranger = kind.open(path, codec);
      const { executor } = pinnedHost(stranger, 'next');
      for (const owner of [undefined, 'another']) {
        if (owner) expect(await store.claim('single', owner, 60_000)).not.toBeNull();
        const control = executor.control('single');
        await expect(control.steer('Say plainly.')).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
        await expect(control.cancel('Stop plainly.')).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
        await expect(control.park('Wait plainly.')).rejects.toMatchObject({
          code: owner ? 'RUN_OWNED_ELSEWHERE' : 'KEY_MISMATCH',
        });
      }
      await executor.shutdown();
      expect(await store.commands.inbox({ runId: 'single' })).toHaveLength(1);
      expect(bytesOf(path)).not.toContain('plainly');
      await stranger.close();
      await store.close();
    },
  );

  test('continue with a new key beside the old one, and then need only the new one', async () => {
    const path = await leftWith(kind, codecOf());
    const both = kind.open(path, encrypt({ keys: { ...first, ...second }, current: 'second' }));
    expect(await goOn(both)).toEqual(runIds);
    const record = sampleRecord('later', { messages: [userMessage('after')] });
    await both.save(record);
    await both.close();

    const only = kind.open(path, encrypt({ keys: second, current: 'second' }));
    expect(await only.load('later')).toEqual(record);
    expect(await only.outcomes.find('single')).toMatchObject({ output: 'Find it. done' });
    await expect(only.outcomes.find('kept')).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
    await only.close();
  });

  test('that were begun without encryption are refused, unless the codec may read them; what they add is encrypted', async () => {
    const path = await leftWith(kind);
    const strict = kind.open(path, codecOf());
    await expect(strict.load('single')).rejects.toMatchObject({ code: 'KEY_MISMATCH' });
    expect(reasonsOf(await strict.listInterrupted())).toEqual(new Set(['KEY_MISMATCH: the meta']));
    await strict.close();

    const lenient = kind.open(path, codecOf({ plain: 'read' }));
    expect(await goOn(lenient)).toEqual(runIds);
    expect(await lenient.outcomes.find('kept')).toMatchObject({ output: 'Keep it. done' });
    await lenient.close();
    expect(bytesOf(path)).toContain('gcm1.first.');
  });
});
