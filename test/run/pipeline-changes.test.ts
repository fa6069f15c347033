import fc from 'fast-check';
import type { PhaseFacts } from 'pawl/stores/kit';
import { describe, expect, test } from 'vitest';
import { beginPhase, isSamePipeline, recordable, restartPipeline } from '../../src/run/pipeline.ts';
import type { Progress } from '../../src/run/progress.ts';
import { enterMessage } from '../../src/values/message.ts';
import { completed, facts, fresh, stepped } from '../fixtures/pipelines.ts';

const [a, b, c] = [facts('a'), facts('b'), facts('c')] as const;

describe('whether a pipeline is still the same (pipeline 9)', () => {
  const same = (past: Progress, phases: readonly PhaseFacts[], hasMessages = past.transcript.length > 1) =>
    isSamePipeline(past, phases, hasMessages);
  const between = recordable(completed([a]));
  const within = stepped(beginPhase(completed([a]), b));
  const changed = facts('b', { hash: 'another' });

  test.for([
    ['nothing was done, a single loop', fresh(), [], true],
    ['nothing was done, a pipeline', fresh(), [a, b], true],
    ['a single loop at work', stepped(fresh()), [], true],
    ['a single loop at work became a pipeline', stepped(fresh()), [a], false],
    ['between phases', between, [a, b], true],
    ['in a phase', within, [a, b], true],
    ['in a phase; one was added behind it', within, [a, b, c], true],
    ['between phases; the next was exchanged', between, [a, c], true],
    ['in a phase; it was changed', within, [a, changed], false],
    ['in a phase; it was removed', within, [a], false],
    ['in a phase; one was added before it', within, [a, c, b], false],
    ['between phases; the finished one was renamed', between, [facts('z', { hash: a.hash }), b], false],
    ['between phases; the finished one was changed', between, [facts('a', { hash: 'another' }), b], false],
    ['between phases; they were swapped', between, [b, a], false],
    ['between phases; one was added before them', between, [c, a, b], false],
    ['between phases; all were removed', between, [], false],
    ['in a phase; all were removed', within, [], false],
    ['all complete', recordable(completed([a, b])), [a, b], true],
    ['all complete; the last was removed', recordable(completed([a, b])), [a], false],
  ] as const)('%s: %#', ([, past, phases, expected]) => {
    expect(same(past as Progress, phases as readonly PhaseFacts[])).toBe(expected);
  });

  test('a list of the host’s own, without places and hashes, is judged by its names', () => {
    const completedPhases = [{ name: 'a', output: 'x' }];
    expect(isSamePipeline({ completedPhases }, [a, b], false)).toBe(true);
    expect(isSamePipeline({ completedPhases }, [b, a], false)).toBe(false);
    expect(isSamePipeline({ completedPhases: [{ ...completedPhases[0], index: 1 } as never] }, [a, b], false)).toBe(
      false,
    );
  });

  test('two phases of one name are distinguished by their places', () => {
    const twins = [facts('x', { hash: '1' }), facts('x', { hash: '2' })];
    expect(same(recordable(completed(twins.slice(0, 1))), twins)).toBe(true);
    expect(same(recordable(completed(twins.slice(0, 1))), twins.toReversed())).toBe(false);
  });
});

describe('a pipeline that changed (pipeline 9)', () => {
  const within = stepped(beginPhase(completed([a, b]), c));
  const now = [a, facts('b', { hash: 'another' }), c];

  test('begins again with restart: nothing is complete, what was paid is counted on', () => {
    const begun = restartPipeline(within, now, 'restart');
    expect(begun).toMatchObject({ completedPhases: [], iteration: 3, counters: { failedSteps: 0 } });
    expect(begun).not.toHaveProperty('openPhase');
    expect(begun.transcript.slice()).toEqual(fresh().transcript.slice());
    expect(begun.usage.inputTokens).toBe(9);
  });

  test('keeps with continue-matching what still matches, from the first on', () => {
    const begun = restartPipeline(within, now, 'continue-matching');
    expect(begun.completedPhases.map(({ name }) => name)).toEqual(['a']);
    expect(begun).not.toHaveProperty('openPhase');
  });

  test('keeps what waits to be said', () => {
    const message = enterMessage({ role: 'user', content: [{ type: 'text', text: 'also X' }] });
    expect(restartPipeline({ ...within, undelivered: [message] }, now, 'restart').undelivered).toEqual([message]);
  });

  test('never keeps a phase behind one that does not match, in any change', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const lists = fc.array(fc.record({ name, version: fc.nat(1) }), { maxLength: 5 });
    const phasesOf = (list: { name: string; version: number }[]) =>
      list.map((each) => facts(each.name, { hash: `${each.name}${each.version}` }));
    fc.assert(
      fc.property(lists, lists, fc.boolean(), (before, today, isOpen) => {
        const [old, phases] = [phasesOf(before), phasesOf(today)];
        const done = isOpen ? old.slice(0, -1) : old;
        const last = old.at(-1);
        const past = isOpen && last ? stepped(beginPhase(completed(done), last)) : recordable(completed(done));
        const isSame = isSamePipeline(past, phases, past.transcript.length > 1);
        const { completedPhases } = restartPipeline(past, phases, 'continue-matching');
        const length = completedPhases.length;
        expect(completedPhases).toEqual(past.completedPhases.slice(0, length));
        expect(completedPhases.map(({ hash }) => hash)).toEqual(phases.slice(0, length).map(({ hash }) => hash));
        const next = done[length];
        if (next) expect(phases[length]?.hash).not.toBe(next.hash);
        if (isSame) expect(length).toBe(done.length);
        else if (!isOpen || !last) expect(length < done.length || phases.length === 0).toBe(true);
        else expect(length < done.length || phases[length]?.hash !== last.hash).toBe(true);
      }),
    );
  });
});
