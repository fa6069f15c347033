import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allowedChanges, type LifePhase, mayFollow, RunLife } from '../../../src/executor/run/life/run-life.ts';
import { seed } from '../../crash/random.ts';

const phases = Object.keys(allowedChanges) as LifePhase[];

/** The phases that a life can reach from one, itself included. */
function reachableFrom(from: LifePhase): Set<LifePhase> {
  const found = new Set<LifePhase>([from]);
  for (const at of found) for (const to of allowedChanges[at]) found.add(to);
  return found;
}

const error = { name: 'Error', message: 'no', code: 'X' };

/** What can happen to a run in this process. Each happens at any time: a chart that allowed all of it would have no order. */
const happenings: { readonly [what: string]: (life: RunLife) => unknown } = {
  'its start is accepted': (life) => life.endResolving({ kind: 'accepted' } as never),
  'its start is answered': (life) => life.endResolving({ kind: 'answered', output: {} as never }),
  'its start is refused': (life) =>
    life.endResolving({ kind: 'refused', error, isDurable: false, progress: {} as never }),
  'this process has it': (life) => life.beginWork(),
  'it is admitted': (life) => life.admit('started'),
  'the store takes it': (life) => life.leave(Promise.resolve(true)),
  'the store does not take it': (life) => life.leave(Promise.resolve(false)),
  'the store does not answer': (life) => life.leave(Promise.reject(new Error('away'))).catch(() => {}),
  'another process has it': (life) => life.lose(),
  'its end is being stored': (life) => life.close(),
  'it ends': (life) => life.end(error),
};

const happeningIn = fc.constantFrom(...Object.keys(happenings));
/** A start has one result. */
const lives = fc
  .array(happeningIn, { maxLength: 14 })
  .map((what) =>
    what.filter((each, i) => !each.startsWith('its start') || what.findIndex((e) => e.startsWith('its start')) === i),
  );

/** Walks through a life, and calls back after each thing that happens, and in its middle. */
async function walk(what: readonly string[], look: (life: RunLife, before: LifePhase) => void): Promise<RunLife> {
  const life = new RunLife();
  for (const each of what) {
    const before = life.phase;
    const going = happenings[each]?.(life);
    look(life, before);
    const within = life.phase;
    await going;
    look(life, within);
  }
  return life;
}

describe('the chart of a run’s life in one process', () => {
  test('reaches each phase from `resolving`, and its end from each phase', () => {
    expect([...reachableFrom('resolving')].sort()).toEqual([...phases].sort());
    for (const phase of phases) expect([phase, reachableFrom(phase).has('over')]).toEqual([phase, true]);
    expect(allowedChanges.over).toEqual([]);
  });

  test('has no way back from a run that is left, closing, lost or refused to one at work', () => {
    for (const phase of ['left', 'closing', 'lost', 'refused', 'answered', 'admitted'] as const)
      expect([phase, reachableFrom(phase).has('at-work')]).toEqual([phase, false]);
  });
});

describe('the life of a run', () => {
  const walks = (check: (life: RunLife, before: LifePhase) => void) =>
    fc.assert(
      fc.asyncProperty(lives, async (what) => void (await walk(what, check))),
      { numRuns: 1_000, seed },
    );

  test('changes only as its chart says, in any order of events', async () => {
    await walks((life, before) => {
      expect(life.phase === before || mayFollow(before, life.phase), `${before} -> ${life.phase}`).toBe(true);
    });
  });

  test('writes boundaries only while this process may announce the end, and announces none of a run that is lost or left', async () => {
    await walks((life) => {
      if (life.mayWrite) expect(life.mayAnnounce).toBe(true);
      if (life.isLost || life.hasLeft || life.isOver) expect([life.mayWrite, life.mayAnnounce]).toEqual([false, false]);
    });
  });

  test('is never again at work here once it has left, or is over', async () => {
    const apart = new Set<RunLife>();
    await walks((life) => {
      if (life.hasLeft || life.isOver) apart.add(life);
      if (apart.has(life)) expect(life.isAtWork).toBe(false);
    });
  });

  test('is asked for by the store and not taken: then it is where it was', async () => {
    for (const answer of ['the store does not take it', 'the store does not answer']) {
      const life = await walk(['this process has it', 'its start is accepted', answer], () => {});
      expect([life.phase, life.isAtWork, life.mayWrite]).toEqual(['at-work', true, true]);
    }
  });

  test('rests again when a start finds it at rest, and was at work in no process meanwhile', async () => {
    const life = await walk(['the store takes it', 'its start is answered', 'it ends'], () => {});
    expect([life.isResting, life.isAnswered, life.hasBegun]).toEqual([true, true, false]);
    const worked = await walk(
      ['this process has it', 'its start is accepted', 'the store takes it', 'it ends'],
      () => {},
    );
    expect([worked.isResting, worked.hasLeft]).toEqual([false, true]);
  });

  test('that is taken over while it leaves is lost, for any answer of the store', async () => {
    const life = new RunLife();
    life.beginWork();
    const asking = Promise.withResolvers<boolean>();
    const leaving = life.leave(asking.promise);
    life.lose();
    asking.resolve(true);
    await leaving;
    expect([life.phase, life.leaving, life.mayAnnounce]).toEqual(['lost', undefined, false]);
  });

  test('ends once, and keeps why it did not begin', () => {
    const life = new RunLife();
    expect([life.end(error), life.end({ ...error, code: 'Y' })]).toEqual([true, false]);
    expect(life.refusal).toEqual(error);
  });
});
