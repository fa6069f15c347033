import { callTool, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, toolOf, until } from '../fixtures/host.ts';
import { notingCritic } from '../fixtures/noting-ports.ts';
import { watchedStore } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const look = (n: number) => callTool('look', { n });

describe('a kill', () => {
  const killing = (when: string) =>
    notingCritic((run) => ({
      onActivity: (activity) => {
        if (`${activity.type} ${activity.type === 'tool' ? activity.name : ''}`.trim() === when)
          run.kill('no progress');
      },
    }));

  test.for(['step', 'tool look', 'delta'])(
    'during a %s ends the run: killed, CRITIC_KILL, its record gone (supervision 2)',
    async (when) => {
      const store = watchedStore();
      const script: ScriptedEntry[] = when === 'delta' ? [reply('half of it')] : [look(1), hang()];
      const host = hostOf({ script, tools, store, ports: { critic: killing(when) } });
      const result = await host.run({ runId: 'r' });
      expect(result).toMatchObject({
        status: 'killed',
        error: { code: 'CRITIC_KILL', name: 'CriticKillError', message: 'no progress' },
      });
      expect(await store.load('r')).toBeNull();
      expect((await store.outcomes.find('r'))?.status).toBe('killed');
    },
  );

  test('stands: a shutdown or a cancel after it changes nothing (supervision 2)', async () => {
    for (const after of ['shutdown', 'cancel'] as const) {
      const store = watchedStore();
      const critic = notingCritic();
      const host = hostOf({ script: [hang()], store, ports: { critic } });
      const run = await host.start({ runId: 'r' });
      await until(() => host.model.calls.length === 1);
      critic.watched[0]?.kill('no progress');
      if (after === 'shutdown') await host.executor.shutdown();
      else await run.cancel();
      expect(await run.result).toMatchObject({ status: 'killed', error: { code: 'CRITIC_KILL' } });
      expect(await store.load('r')).toBeNull();
    }
  });

  test('after a shutdown comes too late: the run is left (finalize 3)', async () => {
    const leaving = gate();
    const store = watchedStore({ before: ({ method }) => (method === 'append' ? leaving.pass() : undefined) });
    const critic = notingCritic();
    const host = hostOf({ script: [hang()], store, ports: { critic } });
    const run = await host.start({ runId: 'r' });
    const down = host.executor.shutdown();
    await leaving.reached;
    critic.watched[0]?.kill('no progress');
    leaving.open();
    await down;
    expect((await run.result).status).toBe('interrupted');
    expect(await store.load('r')).not.toBeNull();
  });

  test('is not swallowed by an optional phase (pipeline 4)', async () => {
    const critic = notingCritic();
    const phases = [
      { name: 'a', instructions: 'A', optional: true, fallback: 'nothing' },
      { name: 'b', instructions: 'B' },
    ];
    const waiting = gate();
    const script: ScriptedEntry[] = [() => waiting.pass().then(() => reply('late'))];
    const host = hostOf({ script, ports: { critic }, agent: { phases } });
    const run = await host.start();
    await waiting.reached;
    critic.watched[0]?.kill('');
    expect(await run.result).toMatchObject({
      status: 'killed',
      error: { message: 'the critic ended the run' },
      phases: [],
    });
    expect(host.model.calls).toHaveLength(1);
  });
});
