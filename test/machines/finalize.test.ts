import type { RunOutput } from 'pawl';
import type { RunMachineEvent } from 'pawl/machines';
import { classifyCheckpointOutcome } from 'pawl/stores/kit';
import { runEvents } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { AnyStateNode } from 'xstate';
import { CriticKillError, DeadlineExceededError, ShutdownError } from '../../src/values/errors.ts';
import { torture } from '../crash/random.ts';
import { failures, matrix, otherCauses, shutdowns } from '../fixtures/finalize-table.ts';
import {
  arrive,
  begin,
  delivered,
  everyEvent,
  machines,
  ownEnds,
  type Place,
  places,
  walk,
  ways,
} from './run-places.ts';

const { stopped, cancelled, left, accepted, refused, modelFailed, settled } = runEvents;
const causes = [
  ...shutdowns.map((cause) => ({ ...cause, way: ways['leave-running'] })),
  ...otherCauses.map((cause) => ({ ...cause, way: ways.fail })),
];

const stops = [
  { title: 'a shutdown', event: stopped(new ShutdownError()), way: ways['leave-running'] },
  { title: 'a cancel', event: cancelled('enough'), way: ways.fail },
  { title: 'a deadline', event: stopped(new DeadlineExceededError()), way: ways.fail },
  { title: 'a kill', event: stopped(new CriticKillError()), way: ways.fail },
];

/** The states in which a machine waits: not those that it only passes, nor its ends. */
function waitingStates(node: AnyStateNode): string[] {
  const isPassed = node.always?.some(({ guard }) => guard === undefined) ?? false;
  if (node.type === 'atomic') return isPassed ? [] : [node.path.join('.')];
  return Object.values(node.states).flatMap(waitingStates);
}

/** What is wrong with the end of a run: it has one, by this way, and is over once that is settled. */
function wrongEnd({ entered, snapshot, machine }: ReturnType<typeof walk>, way: string): string[] {
  const { error, cause } = snapshot.context;
  const verdict = ways[classifyCheckpointOutcome(error, cause)];
  const { status } = walk([settled({} as RunOutput)], snapshot, machine).snapshot;
  const found = [...entered, `${verdict} by its context`, status].join(', ');
  const expected = [way, `${way} by its context`, 'done'].join(', ');
  return found === expected ? [] : [`${found} instead of ${expected}`];
}

const titled = (title: string, wrongs: readonly string[]) => wrongs.map((wrong) => `${title}: ${wrong}`);
const byTitle = <T extends { readonly title: string }>(each: T) => [each.title, each] as const;
/** What a stopped run still waits for at a place: its acceptance, or the answer of a call with effects. */
const awaited = ({ state, effect }: Place): RunMachineEvent[] => {
  if (state === 'resolving') return [accepted()];
  return effect ? [effect] : [];
};

describe('the places at which the finalize matrix is tried', () => {
  test('are all the states in which a run waits, in a single loop and in a pipeline', () => {
    const tried = places.map(({ state }) => state);
    // A phase is the loop of a run without phases: it is tried there.
    const isPhase = (state: string) => state.startsWith('phase(');
    // A run that was left has ended here: only a host's machine tries it again.
    const isOver = (state: string) => state.startsWith('left.') || Object.values<string>(ways).includes(state);
    const isLeft = (state: string) => isPhase(state) || isOver(state);
    const waiting = Object.values(machines).flatMap((machine) => waitingStates(machine.root as AnyStateNode));
    expect(waiting.length).toBeGreaterThan(10);
    expect(waiting.filter((state) => !isLeft(state) && !tried.includes(state))).toEqual([]);
    expect(tried.filter(isPhase).length).toBeGreaterThan(2);
  });

  test.for(places.map(byTitle))('%s: there the run is', ([, place]) => {
    const { value } = arrive(place);
    expect(typeof value === 'string' ? value : Object.entries(value).flat().join('.')).toBe(place.state);
  });
});

describe('a run that is stopped', () => {
  test.for(places.map(byTitle))('%s leaves by the way that each cause says (finalize 2, 8)', ([, place]) => {
    const from = arrive(place);
    const isHeld = place.state === 'resolving';
    const wrongs = causes.flatMap(({ title, make, way }) => {
      const stop = walk([stopped(make())], from, place.machine);
      const early = isHeld ? stop.entered.map((entered) => `${entered} before it was accepted`) : [];
      const end = isHeld ? walk(awaited(place), stop.snapshot, place.machine) : stop;
      return titled(title, [...early, ...wrongEnd(end, way)]);
    });
    expect(wrongs).toEqual([]);
  });

  test.for(places.map(byTitle))('%s and again: the first cause decides (finalize 2)', ([, place]) => {
    const from = arrive(place);
    const wrongs = stops.flatMap((first) =>
      stops.flatMap((second) => {
        const events = [first.event, second.event, ...awaited(place)];
        return titled(`${first.title}, ${second.title}`, wrongEnd(walk(events, from, place.machine), first.way));
      }),
    );
    expect(wrongs).toEqual([]);
  });

  test.for(places.map(byTitle))(
    '%s once it is free to leave: waits for calls with effects and for nothing else, and leaves by the way of its cause',
    ([, place]) => {
      const from = arrive(place);
      const isHeld = awaited(place).length > 0;
      const wrongs = causes.flatMap(({ title, make, way }) => {
        const stop = walk([left(make())], from, place.machine);
        const early = isHeld ? stop.entered.map((entered) => `${entered} at once`) : [];
        const end = isHeld ? walk(awaited(place), stop.snapshot, place.machine) : stop;
        return titled(title, [...early, ...wrongEnd(end, way)]);
      });
      expect(wrongs).toEqual([]);
    },
  );
});

describe('a run that is refused', () => {
  test('leaves by the way of the matrix, for every error against every cause (finalize 1)', () => {
    const from = begin();
    const wrongs = matrix.flatMap(({ title, error, cause, verdict }) => {
      // Nothing refuses a run without an error; one that succeeded before is only delivered.
      const end = verdict === 'complete' ? delivered('ok') : refused(error.make());
      return titled(title, wrongEnd(walk([stopped(cause.make()), end], from), ways[verdict]));
    });
    expect(wrongs).toEqual([]);
  });

  test('without having been stopped fails, for every error', () => {
    const from = begin();
    const wrongs = failures.flatMap(({ title, make }) =>
      titled(title, wrongEnd(walk([refused(make())], from), ways.fail)),
    );
    expect(wrongs).toEqual([]);
  });
});

describe('a run that ends by itself', () => {
  test.for(ownEnds.map(byTitle))(
    'because it %s: no stop that comes later changes its way out (finalize 3)',
    ([, end]) => {
      const wrongs = causes.flatMap(({ title, make }) =>
        titled(title, wrongEnd(walk([...end.events, stopped(make())], begin()), end.way)),
      );
      expect(wrongs).toEqual([]);
    },
  );

  test('because its model failed leaves as failed, for every error and any later event (finalize 3)', () => {
    const wrongs = failures.flatMap(({ title, make }) =>
      stops.flatMap((stop) => {
        const end = walk([accepted(), modelFailed(make()), stop.event], begin());
        return titled(`${title}, ${stop.title}`, wrongEnd(end, ways.fail));
      }),
    );
    expect(wrongs).toEqual([]);
  });
});

test('events at the wrong time, twice or after the end give no run a second end: each pair of events at each place, or at each third', () => {
  const wrongs = places.flatMap((place, at) => {
    const from = arrive(place);
    return everyEvent.flatMap((one, nth) => {
      const first = walk([one], from, place.machine);
      // Each pair at one place of three; under torture at each.
      const others = everyEvent.filter((_, i) => torture > 1 || (i + nth + at) % 3 === 0);
      return others.flatMap((other) => {
        const second = walk([other, one, other], first.snapshot, place.machine);
        const entered = [...new Set([...first.entered, ...second.entered])];
        const title = `${place.title}, ${one.type}, ${other.type}`;
        if (entered.length > 0) return titled(title, wrongEnd({ ...second, entered }, entered[0] ?? ''));
        return second.snapshot.status === 'active' ? [] : [`${title}: over without a way out`];
      });
    });
  });
  expect(wrongs).toEqual([]);
});
