// Whatever a test draws, it draws from the seed: the same test of the same sources gets the same numbers, in any order of files.
import fc from 'fast-check';
import { beforeEach, expect } from 'vitest';
import { births } from '../../src/run/identity.ts';
import { numberOf, randomFrom, seed } from '../crash/random.ts';
import { birthOf } from '../fixtures/child-id.ts';

fc.configureGlobal({ seed });

/** What is drawn by default, as the jitter of a retry is. Each test has numbers of its own: those of an `only` are the same. */
function drawFor(name: string): void {
  Math.random = randomFrom(numberOf(`${seed} ${name}`) * 2 ** 32);
}

births.make = birthOf;

drawFor(`${expect.getState().testPath}`);
beforeEach(({ task }) => drawFor(task.fullTestName));
