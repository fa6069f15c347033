import { memoryStore, type RunOutcome } from 'pawl';
import { callTool, fail, hang, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, watchedStore } from '../fixtures/watched-store.ts';

const refused = () => fail(Object.assign(new Error('no key'), { statusCode: 400 }));
const tools = [toolOf('look')];
const request = { runId: 'r', prompt: 'Go.' };

describe('a start that finds how its run ended', () => {
  test.for([
    ['only its outcome is kept', {}],
    ['its record is kept', { retention: { records: 60_000 } }],
    ['its record is kept longer than its outcome', { retention: { records: 60_000, outcomes: 1 } }],
  ] as const)('says that, and when: %s (edges 17)', async ([, keeps]) => {
    const clock = testClock(5_000);
    const store = memoryStore({ clock });
    const first = await hostOf({ script: [reply('yes')], store, clock, ...keeps }).run(request);
    expect([first.kept, first.endedAt]).toEqual([undefined, undefined]);
    await clock.advance(1_000);
    const next = hostOf({ script: [], store, clock, ...keeps });
    const run = await next.start(request);
    expect(run.accepted).toBe('ended');
    expect(await run.result).toMatchObject({ status: 'ok', output: 'yes', kept: true, endedAt: 5_000 });
    const later = await next.start(request, { drive: 'later' });
    expect([later.accepted, (await later.result).kept]).toEqual(['ended', true]);
    const other = await next.start({ ...request, prompt: 'Another.' });
    expect(other.error?.code).toBe('RUN_ID_CONFLICT');
  });

  test('gives its end, and begins no second run, where a step or a call of its first one is recorded (edges 17)', async () => {
    const open = [callTool('look', {}), refused()];
    for (const script of [open, [callTool('stop')]]) {
      const store = memoryStore();
      const stop = toolOf('stop', 'once', () => void host.executor.control('r').cancel());
      const host = hostOf({ script, tools: [...tools, stop], store });
      const { status } = await host.run(request);
      const next = hostOf({ script: [reply('twice')], tools: [...tools, stop], store });
      expect(await next.run(request)).toMatchObject({ status, kept: true });
      expect(next.model.calls).toEqual([]);
    }
  });
});

describe('a run that ended badly before its first step', () => {
  test.for([{}, { retention: { records: 60_000 } }, { journal: true }] as const)(
    'begins again with the next start of its request (%j; edges 17)',
    async (keeps) => {
      const store = memoryStore();
      const ends: RunOutcome[] = [];
      const options = { store, onOutcome: (end: RunOutcome) => void ends.push(end), ...keeps };
      const bad = await hostOf({ ...options, script: [refused()] }).run(request);
      expect(bad).toMatchObject({ status: 'error', iterations: 0 });
      const host = hostOf({ ...options, script: [reply('yes')] });
      expect((await host.start({ ...request, prompt: 'Another.' })).error?.code).toBe('RUN_ID_CONFLICT');
      const run = await host.start(request);
      expect(run.accepted).toBe('started');
      expect(await run.result).toMatchObject({ status: 'ok', output: 'yes', iterations: 1 });
      expect(ends.map(({ status }) => status)).toEqual(['error', 'ok']);
      expect(new Set(ends.map(({ outcomeId }) => outcomeId)).size).toBe(2);
      expect(await host.run(request)).toMatchObject({ status: 'ok', kept: true });
    },
  );

  test('begins again for an admission, whose handle gets the new end and not the earlier one (edges 17)', async () => {
    const store = memoryStore();
    await hostOf({ script: [refused()], store }).run(request);
    const host = hostOf({ script: [reply('yes')], store });
    const run = await host.start(request, { drive: 'later' });
    expect(run.accepted).toBe('started');
    expect(await store.outcomes.find('r')).toBeNull();
    const end = run.result;
    await host.executor.drive('r');
    expect(await end).toMatchObject({ status: 'ok', output: 'yes' });
    await host.executor.shutdown();
  });

  test('stays ended once it was cancelled: a request that comes twice undoes no cancel (edges 17)', async () => {
    const store = memoryStore();
    const first = await hostOf({ script: [hang()], store }).start(request);
    expect(await first.cancel()).toMatchObject({ status: 'cancelled', iterations: 0 });
    const again = await hostOf({ script: [reply('yes')], store }).start(request);
    expect(again.accepted).toBe('ended');
    expect(await again.result).toMatchObject({ status: 'cancelled', kept: true });
  });

  test('is joined while another process has its id: that one may begin it just now (edges 17)', async () => {
    const store = memoryStore();
    await hostOf({ script: [refused()], store }).run(request);
    await store.claim('r', 'another', 1_000_000);
    const run = await hostOf({ script: [reply('yes')], store }).start(request);
    expect(run.accepted).toBe('joined');
    expect((await run.result).error?.code).toBe('RUN_OWNED_ELSEWHERE');
  });

  test('begins after a crash between the removal of its end and its new record (edges 17)', async () => {
    const inner = memoryStore();
    await hostOf({ script: [refused()], store: inner }).run(request);
    let isForgotten = false;
    const store = watchedStore(
      {
        before: ({ method }) => (method === 'save' || method === 'append') && new Promise(() => {}),
        after: ({ method }) => {
          if (method === 'outcomes.keep') isForgotten = true;
        },
      },
      inner,
    );
    void hostOf({ script: [], store }).start(request);
    await until(() => isForgotten);
    const next = hostOf({ script: [reply('yes')], store: await afterCrash(inner) });
    expect(await next.run(request)).toMatchObject({ status: 'ok', output: 'yes' });
  });
});
