// Machines for the tests of drawings.

/** Numbers that look random, and are the same for the same seed. */
function numbersFrom(seed: number): (below: number) => number {
  let state = (seed * 2_654_435_761) % 2 ** 32;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Config {
  readonly [key: string]: unknown;
}

/** Returns the definition of a machine of up to 60 states: nested, parallel, final, history, with transitions between any two. */
export function randomMachine(seed: number): Config {
  const next = numbersFrom(seed);
  const ids: string[] = [];
  let left = 3 + next(40);
  const stateAt = (id: string, depth: number): Config => {
    ids.push(id);
    left -= 1;
    const kind = depth < 3 && left > 2 ? next(6) : 5;
    if (kind < 2) {
      const states = Object.fromEntries(
        Array.from({ length: 2 + next(4) }, (_, at) => [`s${at}`, stateAt(`${id}.s${at}`, depth + 1)]),
      );
      return kind === 0 ? { id, type: 'parallel', states } : { id, initial: 's0', states };
    }
    return { id, ...(next(9) === 0 && depth > 0 ? { type: 'final' } : {}) };
  };
  const states = Object.fromEntries(Array.from({ length: 2 + next(5) }, (_, at) => [`t${at}`, stateAt(`t${at}`, 1)]));
  const withTransitions = (state: Config): Config => {
    const inner = state.states as { readonly [key: string]: Config } | undefined;
    const count = state.type === 'final' ? 0 : next(4);
    const on = Object.fromEntries(
      Array.from({ length: count }, (_, at) => {
        const target = `#${ids[next(ids.length)]}`;
        return [`${'event'.repeat(1 + next(3))}${at}`, next(8) === 0 ? { actions: 'note' } : { target }];
      }),
    );
    return {
      ...state,
      on,
      ...(inner
        ? { states: Object.fromEntries(Object.entries(inner).map(([key, each]) => [key, withTransitions(each)])) }
        : {}),
    };
  };
  return withTransitions({ id: `random${seed}`, initial: 't0', states });
}

const step = (to: string, more: Config = {}): Config => ({ on: { next: to }, ...more });

/** Machines by what is drawn of them. */
export const drawnMachines: { readonly [what: string]: Config } = {
  'one state': { id: 'one' },
  'a chain of 60 states': {
    id: 'chain',
    initial: 's0',
    states: Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [
        `s${at}`,
        at === 59
          ? { type: 'final' }
          : step(`s${at + 1}`, at % 7 === 6 ? { on: { next: `s${at + 1}`, again: `s${at - 5}`, fail: 's59' } } : {}),
      ]),
    ),
  },
  'parallel regions that others lead into': {
    id: 'parcel',
    initial: 'idle',
    on: { abort: '.over' },
    states: {
      idle: { on: { go: 'work', jump: '#deep' } },
      work: {
        type: 'parallel',
        onDone: 'over',
        on: { cancel: 'over', again: { target: 'work', reenter: true } },
        states: {
          left: {
            initial: 'a',
            states: {
              a: { on: { next: 'b', out: '#over', self: { target: 'a', reenter: true } } },
              b: { type: 'final' },
            },
          },
          right: {
            initial: 'a',
            states: {
              a: { on: { in: 'c' } },
              c: { initial: 'd', states: { d: { on: { up: '#parcel.work.right.a' } }, deep: { id: 'deep' } } },
              was: { type: 'history', target: 'c' },
            },
            on: { back: '.was', inner: '.c.deep' },
          },
        },
      },
      over: { id: 'over', type: 'final' },
    },
  },
  'eight regions': {
    id: 'lamps',
    type: 'parallel',
    states: Object.fromEntries(
      Array.from({ length: 8 }, (_, at) => [
        `lamp${at}`,
        {
          initial: 'off',
          states: { off: { on: { [`switch_${at}`]: 'on' } }, on: { on: { [`switch_${at}`]: 'off' } } },
        },
      ]),
    ),
  },
};
