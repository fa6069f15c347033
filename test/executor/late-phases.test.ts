import { memoryStore, type Phase } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { outputsOf, systemsOf, two } from '../fixtures/phases.ts';
import { afterCrash, headOfWrite, isWrite, type StoreCall, watchedStore } from '../fixtures/watched-store.ts';

const phasesNamed = (names: string, recovery: Phase['recovery'] = 'step'): Phase[] =>
  [...names].map((name) => ({ name, instructions: `${name} of {{.Query}}`, recovery }));
const completedIn = (call: StoreCall) => headOfWrite(call)?.completedPhases.length ?? 0;

/** A host whose store refuses each write, from the end of its first phase until it is up again. */
function troubled(script: readonly ScriptedEntry[], options: HostOptions = {}) {
  const clock = testClock();
  const inner = memoryStore({ clock });
  const state = { isDown: false, isUp: false, began: [] as string[] };
  const refuse = (call: StoreCall) => {
    if (!isWrite(call) || state.isUp) return;
    state.isDown ||= completedIn(call) > 0;
    if (state.isDown) throw new Error('the store is down');
  };
  const tools = (['read', 'idempotent', 'once'] as const).map((effect) =>
    toolOf(effect, effect, ({ n }) => void state.began.push(`${effect} ${n}`)),
  );
  const store = watchedStore({ before: refuse }, inner);
  const host = hostOf({ agent: { phases: two }, script, tools, store, clock, ...options });
  const comeBack = async () => {
    state.isUp = true;
    await clock.advance(10_000);
  };
  return { ...host, clock, inner, state, comeBack };
}

describe('the end of a phase while the store fails', () => {
  test.for(['step', 'boundary'] as const)(
    'may be late like a step: the next phase (recovery %s) works, and the next save stores both (edges 23)',
    async (recovery) => {
      const phases = phasesNamed('ab', recovery);
      const script = [reply('one'), callTool('read', { n: 1 }), callTool('read', { n: 2 }), reply('two')];
      const host = troubled(script, { agent: { phases } });
      const run = await host.start({ runId: 'r' });
      await until(() => host.model.calls.length === 4);
      await settle();
      expect(host.state.began).toEqual(['read 1', 'read 2']);
      expect((await host.inner.load('r'))?.completedPhases).toEqual([]);
      await host.comeBack();
      const result = await run.result;
      expect(result).toMatchObject({ status: 'ok', output: 'two', iterations: 4, durable: true });
      expect(outputsOf(result)).toEqual(['a: one', 'b: two']);
      expect(result.saveErrors).toBeGreaterThan(1);
      expect(await host.inner.load('r')).toBeNull();
    },
  );

  test('is stored as soon as the store is back, while the next phase works (edges 23)', async () => {
    const host = troubled([reply('one'), callTool('read', { n: 1 }), hang()]);
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 3);
    await host.comeBack();
    const record = await host.inner.load('r');
    expect(record).toMatchObject({ completedPhases: [{ name: 'a', output: 'one' }], openPhase: { index: 1 } });
    expect(record?.iteration).toBe(2);
    await run.cancel();
  });

  test.for(['wait', 'fail'] as const)(
    'counts as a step of maxUnsavedSteps over all phases, then: %s (edges 23)',
    async (how) => {
      const script = [reply('a'), callTool('read', { n: 1 }), reply('b'), reply('c'), reply('d')];
      // biome-ignore lint/suspicious/noThenProperty: the option is called so
      const onSaveError = { maxUnsavedSteps: 2, then: how };
      const host = troubled(script, { agent: { phases: phasesNamed('abcd') }, onSaveError });
      const run = await host.start({ runId: 'r' });
      await until(() => host.model.calls.length === 4);
      await settle();
      // The end of a, the step of b, and the end of b are unsaved: the run does not act on what c answers.
      expect(host.model.calls).toHaveLength(4);
      await host.comeBack();
      const result = await run.result;
      if (how === 'wait') expect(outputsOf(result)).toEqual(['a: a', 'b: b', 'c: c', 'd: d']);
      else expect(result).toMatchObject({ status: 'error', error: { code: 'STORE_UNAVAILABLE' } });
    },
  );

  test.for(['idempotent', 'once'])(
    'no %s call of the next phase begins before it is stored (edges 23)',
    async (effect) => {
      const host = troubled([reply('one'), callTool(effect, { n: 1 }), reply('two')]);
      const run = await host.start({ runId: 'r' });
      await until(() => host.model.calls.length === 2);
      await host.clock.advance(120_000);
      expect(host.state.began).toEqual([]);
      await host.comeBack();
      expect((await run.result).status).toBe('ok');
      expect(host.state.began).toEqual([`${effect} 1`]);
    },
  );
});

describe('a process that dies before a late end of a phase is stored', () => {
  // With recovery boundary, a phase that has begun a `once` call continues at its step as well.
  test.for(['step', 'boundary'] as const)(
    'the next one continues in that phase (recovery %s), and repeats no recorded call (edges 23)',
    async (recovery) => {
      const agent = { phases: phasesNamed('ab', recovery) };
      const rest = [reply('one'), callTool('read', { n: 2 })];
      const host = troubled([callTool('once', { n: 1 }), ...rest, hang()], { agent });
      await host.start({ runId: 'r' });
      await until(() => host.model.calls.length === 4);
      expect(host.state.began).toEqual(['once 1', 'read 2']);

      const { tools = [] } = host.agent;
      const store = await afterCrash(host.inner);
      const second = hostOf({ agent: { ...agent, tools }, script: [...rest, reply('two')], store });
      const result = await second.run({ runId: 'r' });
      expect(result).toMatchObject({ status: 'ok', output: 'two', iterations: 4 });
      expect(outputsOf(result)).toEqual(['a: one', 'b: two']);
      expect(systemsOf(second.model)).toEqual(['a of Go.', 'b of Go.', 'b of Go.']);
      expect(host.state.began).toEqual(['once 1', 'read 2', 'read 2']);
    },
  );

  test('a phase that only reads (recovery boundary) begins again at its beginning, and the one after it too (edges 23)', async () => {
    const agent = { phases: phasesNamed('abc', 'boundary') };
    const script = [callTool('read', { n: 1 }), reply('one'), callTool('read', { n: 2 }), reply('two')];
    const host = troubled([...script, hang()], { agent });
    await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 5);
    const left = await afterCrash(host.inner);
    expect(await left.load('r')).toMatchObject({ iteration: 0, completedPhases: [], messages: { length: 1 } });

    const second = hostOf({
      agent: { ...agent, tools: host.agent.tools ?? [] },
      script: [...script, reply('three')],
      store: left,
    });
    const result = await second.run({ runId: 'r' });
    expect(outputsOf(result)).toEqual(['a: one', 'b: two', 'c: three']);
    expect([result.iterations, second.model.calls.length]).toEqual([5, 5]);
    expect(result.messages.filter(({ role }) => role === 'tool')).toHaveLength(2);
  });
});

describe('a journal of a run whose end of a phase is late', () => {
  /** What a reader gets, without what differs from run to run. */
  async function readEvents(isTroubled: boolean) {
    const script = [callTool('read', { n: 1 }), reply('one'), callTool('read', { n: 2 }), reply('two')];
    const host = troubled(script, { journal: { flushMs: 1 } });
    host.state.isUp = !isTroubled;
    const run = await host.start({ runId: 'r' });
    await until(() => host.model.calls.length === 4);
    await host.comeBack();
    expect((await run.result).status).toBe('ok');
    const events: string[] = [];
    for await (const event of host.executor.events('r')) {
      const { type } = event;
      if (['step.done', 'phase.started', 'phase.done', 'tool.done', 'run.ended'].includes(type))
        events.push([type, 'step' in event ? event.step : 'index' in event ? event.index : ''].join(' '));
      if (type === 'run.ended') break;
    }
    return events;
  }

  test('has each of its events once, in the order of a run without trouble (edges 23)', async () => {
    const expected = await readEvents(false);
    expect(expected).toContain('phase.done 0');
    expect(await readEvents(true)).toEqual(expected);
  });
});
