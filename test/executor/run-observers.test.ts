import { createPalette, defineAgent, memoryStore, type ObservedRun, type RunEvent, type RunObserver } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { listen, ofType, typesOf } from '../events/listening.ts';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { notingAudit, onlyNoted } from '../fixtures/noting-ports.ts';
import { afterCrash } from '../fixtures/watched-store.ts';

const tools = [toolOf('look')];
const script = () => [callTool('look', { n: 1 }), reply('end')];

interface Seen {
  readonly event: RunEvent;
  readonly run: ObservedRun;
}

/** An observer that keeps what it gets. */
function seeing(): RunObserver & { readonly seen: Seen[] } {
  const seen: Seen[] = [];
  return Object.assign(
    Object.create({ onEvent: (event: RunEvent, run: ObservedRun) => void seen.push({ event, run }) }),
    {
      seen,
    },
  );
}

const broken = () => {
  throw new Error('broken');
};
const eventsIn = ({ seen }: { readonly seen: readonly Seen[] }) => seen.map(({ event }) => event);
const runsIn = ({ seen }: { readonly seen: readonly Seen[] }) => [...new Set(seen.map(({ run }) => run))];

describe('an observer', () => {
  test('gets every event of every run, in order, as `run.events()` gives them', async () => {
    const observer = seeing();
    const host = hostOf({ script: [...script(), ...script()], tools, observers: [observer] });
    const run = await host.start({ runId: 'a' });
    const heard = await listen(run);
    await host.run({ runId: 'b' });
    expect(eventsIn(observer).filter(({ runId }) => runId === 'a')).toEqual(heard);
    expect(typesOf(heard)).toContain('tool.done');
    expect(runsIn(observer).map(({ info }) => info.runId)).toEqual(['a', 'b']);
  });

  test('gets with each event the same frozen object, which says what the run is', async () => {
    const observer = seeing();
    const host = hostOf({ script: script(), tools, observers: [observer] });
    await host.run({ runId: 'a', prompt: 'Look.', callerId: 'ann', inputs: { n: 1 } });
    const [run, ...others] = runsIn(observer);
    expect(others).toEqual([]);
    expect(run).toMatchObject({ origin: 'started', starts: 1, rootRunId: 'a' });
    expect(run?.info).toMatchObject({ runId: 'a', subjectId: 'worker', callerId: 'ann', prompt: 'Look.' });
    expect([Object.isFrozen(run), Object.isFrozen(run?.info)]).toEqual([true, true]);
  });

  test('cannot change an event for others: all of it is frozen', async () => {
    const observer = seeing();
    const audit = notingAudit();
    const vandal: RunObserver = {
      onEvent(event) {
        if (event.type === 'step.done') (event.usage as { inputTokens: number }).inputTokens = 999;
        if (event.type === 'tool.done') (event as { name: string }).name = 'another';
      },
    };
    const host = hostOf({ script: script(), tools, observers: [vandal, observer], ports: { audit } });
    const result = await host.run();
    const steps = ofType(eventsIn(observer), 'step.done');
    expect(steps.map(({ usage }) => usage.inputTokens)).toEqual([10, 20]);
    expect(result.usage.inputTokens).toBe(20);
    expect(onlyNoted(audit).told.onTool[0]?.[0].name).toBe('look');
    expect(host.warnings).toEqual(['run: an observer threw', 'run: an observer threw']);
  });

  test('gets texts after `redact`, in events and in what the run is', async () => {
    const observer = seeing();
    const host = hostOf({
      script: [callTool('look', { key: 'sk-1' }), reply('sk-1 it is')],
      tools,
      observers: [observer],
      redact: (text) => text.replaceAll('sk-1', '[key]'),
    });
    const result = await host.run({ prompt: 'Use sk-1.', inputs: { token: 'sk-1' } });
    expect(result.output).toBe('sk-1 it is');
    expect(JSON.stringify(observer.seen)).not.toContain('sk-1');
    expect(observer.seen[0]?.run.info).toMatchObject({ prompt: 'Use [key].', inputs: { token: '[key]' } });
  });

  test.for<[string, boolean, () => unknown]>([
    ['throws', true, broken],
    ['rejects', true, () => Promise.reject(new Error('broken'))],
    ['never answers', false, () => new Promise(() => {})],
    ['returns what throws when it is looked at', false, () => new Proxy({}, { get: broken })],
  ])('that %s changes nothing but the log, and keeps no event from the next', async ([, isLogged, onEvent]) => {
    const observer = seeing();
    const observers = [{ onEvent }, observer];
    const host = hostOf({ script: script(), tools, store: memoryStore(), observers });
    expect(await host.run()).toMatchObject({ status: 'ok', output: 'end', iterations: 2, saveErrors: 0 });
    await settle();
    expect(typesOf(eventsIn(observer)).at(-1)).toBe('run.ended');
    expect(host.warned.some(({ fields }) => JSON.stringify(fields).includes('broken'))).toBe(isLogged);
  });

  test('that acts on the run in an event gets what follows from it after that event, and so do the others', async () => {
    const observer = seeing();
    const held = gate();
    const run: { steer?: ((text: string) => Promise<unknown>) | undefined } = {};
    const nosy: RunObserver = {
      onEvent: ({ type }) => {
        const { steer } = run;
        if (type !== 'checkpoint.saved' || !steer) return;
        run.steer = undefined;
        void steer('Look again.');
      },
    };
    const host = hostOf({
      script: [() => held.pass().then(() => callTool('look')), reply('first'), reply('end')],
      tools,
      store: memoryStore(),
      observers: [nosy, observer],
    });
    const started = await host.start();
    await held.reached;
    run.steer = (text) => started.steer(text);
    await settle();
    held.open();
    await started.result;
    const seqs = eventsIn(observer).map(({ seq }) => seq);
    expect(typesOf(eventsIn(observer))).toContain('steer.queued');
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  });

  test('may be an instance of a class, with fields and a `this` of its own', async () => {
    class Counter implements RunObserver {
      count = 0;
      onEvent() {
        this.count += 1;
      }
    }
    const counter = new Counter();
    await hostOf({ observers: [counter, {}] }).run();
    expect(counter.count).toBeGreaterThan(3);
  });

  test.for<[unknown, string]>([
    [{ onEvent: () => {} }, 'observers must be a list, not an object'],
    [[null], 'observers[0] must be an object, not null'],
    [[{}, { onevent: () => {} }], 'unknown option observers[1].onevent; did you mean observers[1].onEvent?'],
    [[{ onEvent: 'x' }], 'observers[0].onEvent must be a function, not a string'],
  ])('of another form is refused when the executor is made: %j', ([observers, message]) => {
    expect(() => hostOf({ observers: observers as never })).toThrow(`createExecutor: ${message}`);
  });
});

describe('what an observer knows of a run', () => {
  test('that was left and recovered: `recovered`, and which start it is', async () => {
    const store = memoryStore();
    const dying = hostOf({ store, script: [hang()] });
    await dying.start({ runId: 'r' });
    const observer = seeing();
    const host = hostOf({ store: await afterCrash(store), observers: [observer] });
    await host.executor.recover();
    await host.executor.get('r')?.result;
    expect(runsIn(observer)).toMatchObject([{ origin: 'recovered', starts: 2, rootRunId: 'r' }]);
    expect(typesOf(eventsIn(observer))[0]).toBe('run.resumed');
  });

  test('of a host’s machine: `hosted`', async () => {
    const observer = seeing();
    const { executor, agent } = hostOf({ observers: [observer] });
    const actor = createActor(executor.logic(agent), { input: { runId: 'h', prompt: 'Go.' } }).start();
    await until(() => actor.getSnapshot().status === 'done');
    expect(runsIn(observer)).toMatchObject([{ origin: 'hosted', starts: 1, rootRunId: 'h' }]);
  });

  test('that a call of another run began: `child`, with the run at the top of the tree, and which start of the call it is (otel 19)', async () => {
    const observer = seeing();
    const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
    const host = hostOf({
      script: [callTool('agent__helper', { prompt: 'Help me.' }), reply('helped'), reply('end')],
      agent: { subAgents: ['helper'] },
      ports: { palette: createPalette({ agents: [helper] }) },
      observers: [observer],
    });
    await host.run({ runId: 'top' });
    const [, child] = runsIn(observer);
    expect(child).toMatchObject({ origin: 'child', starts: 1, rootRunId: 'top' });
    expect(child?.info.parentRunId).toBe('top');
    expect(child?.parent).toMatchObject({ runId: 'top', attempt: 1, callAttempt: 1 });
    expect(child?.info.runId).not.toBe('top');
  });

  test('that is set aside: its record’s caller, with `run.parked` as the last word (edges 19)', async () => {
    const store = memoryStore();
    await hostOf({ store, script: [hang()] }).start({ runId: 'r', callerId: 'ann' });
    const left = await afterCrash(store);
    const record = await left.load('r');
    if (!record) throw new Error('no record');
    await left.save({ ...record, attempts: 3 });
    const observer = seeing();
    await hostOf({ store: left, observers: [observer] }).executor.recover();
    await settle();
    const types = typesOf(eventsIn(observer)).filter((type) => type !== 'run.status');
    expect(types).toEqual(['run.parked']);
    expect(runsIn(observer)).toMatchObject([{ origin: 'recovered', info: { runId: 'r', callerId: 'ann' } }]);
  });

  test('that was refused: an end without a beginning, and the attempt 0', async () => {
    const observer = seeing();
    const host = hostOf({ observers: [observer] });
    await host.run({ runId: '~not-yours' });
    expect(typesOf(eventsIn(observer)).filter((type) => type !== 'run.status')).toEqual(['run.ended']);
    expect(runsIn(observer)).toMatchObject([{ origin: 'started', starts: 0 }]);
  });

  test('that has ended, or is live here already: nothing from a second start', async () => {
    const observer = seeing();
    const host = hostOf({ store: memoryStore(), observers: [observer] });
    const run = await host.start({ runId: 'r' });
    await Promise.all([run.result, host.run({ runId: 'r' })]);
    await host.run({ runId: 'r' });
    expect(typesOf(eventsIn(observer)).filter((type) => type === 'run.ended')).toHaveLength(1);
    expect(runsIn(observer)).toHaveLength(1);
  });
});
