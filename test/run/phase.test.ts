import { defineAgent, type Phase } from 'pawl';
import { describe, expect, test } from 'vitest';
import { phaseFactsOf, readPhases } from '../../src/agent/phase.ts';

const phase: Phase = { name: 'a', instructions: 'Look.' };
const define = (phases: unknown) => () => defineAgent({ id: 'worker', instructions: '', phases: phases as Phase[] });

describe('phases that are not what they should be are refused when the agent is defined', () => {
  test.for([
    ['that are no list', { a: phase }, /agent worker: phases must be a list/],
    ['one of which is nothing', [phase, null], /agent worker: phases\[1\] must be an object, not null/],
    ['without a name', [{ instructions: '' }], /phases\[0\] needs a name: a string that is not empty/],
    ['with an empty name', [{ ...phase, name: '' }], /phases\[0\] needs a name/],
    ['named like the prompt', [{ ...phase, name: 'Query' }], /phases\[0\] must not be named Query/],
    ['without instructions', [{ name: 'a' }], /phases\[0\] \(a\) needs instructions: a string/],
    ['with no turns', [{ ...phase, maxSteps: 0 }], /maxSteps must be a whole number above 0, not 0/],
    ['with half a turn', [{ ...phase, maxSteps: 1.5 }], /maxSteps must be a whole number above 0, not 1.5/],
    ['of none', [], /phases is empty/],
    ['with turns that are no number', [{ ...phase, maxSteps: Number.NaN }], /maxSteps must be .*not NaN/],
    ['with an unknown recovery', [{ ...phase, recovery: 'never' }], /recovery must be 'step' or 'boundary'/],
    ['with a tool instead of a list of names', [{ ...phase, tools: 'look' }], /tools must be a list of names/],
    ['with tools that are no names', [{ ...phase, tools: [{ name: 'look' }] }], /tools must be a list of names/],
    [
      'with a tier that is no name',
      [{ ...phase, model: 7 }],
      /model must be a language model of the AI SDK, or the name of a tier, not a value of type number/,
    ],
    ['with a fallback that is no text', [{ ...phase, optional: true, fallback: {} }], /fallback must be a string/],
  ] as const)('%s', ([, phases, message]) => {
    expect(define(phases)).toThrow(TypeError);
    expect(define(phases)).toThrow(message);
  });

  test.for([
    ['two of one name', [phase, phase]],
    ['one with everything', [{ ...phase, model: 'deep', tools: [], maxSteps: 2, optional: true, bare: true }]],
  ] as const)('and others are not: %s', ([, phases]) => {
    expect(define(phases)).not.toThrow();
    expect(() => readPhases('agent worker', phases)).not.toThrow();
  });
});

describe('what runs know of a phase', () => {
  const factsOf = (rest: Partial<Phase>) => phaseFactsOf([{ ...phase, ...rest }], 20)[0];

  test('has its defaults (pipeline 1, 4, 8)', () => {
    expect(factsOf({})).toMatchObject({
      name: 'a',
      maxSteps: 20,
      isBare: false,
      isOptional: false,
      fallback: '',
      recovery: 'step',
    });
    expect(phaseFactsOf(undefined, 20)).toEqual([]);
  });

  test('has one turn when it is bare, with any maxSteps (pipeline 3)', () => {
    expect(factsOf({ bare: true, maxSteps: 9 })?.maxSteps).toBe(1);
  });

  const hash = factsOf({})?.hash;
  test.for([
    { name: 'b' },
    { instructions: 'Look!' },
    { model: 'deep' },
    { tools: [] },
    { tools: ['look'] },
    { optional: true },
    { fallback: 'x' },
    { bare: true },
  ] as const)('has another hash when %j is said: another definition (pipeline 9)', (change) => {
    expect(factsOf(change)?.hash).not.toBe(hash);
  });

  test.for([
    { maxSteps: 3 },
    { recovery: 'boundary' },
    { optional: false },
    { fallback: '' },
    { bare: false },
  ] as const)('has the same hash when %j is said: what it does is the same (pipeline 9)', (change) => {
    expect(factsOf(change)?.hash).toBe(hash);
  });
});
