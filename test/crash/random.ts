/** Numbers from 0 up to 1 that a seed reproduces (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A number from 0 up to 1 that a text always gives. */
export function numberOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return randomFrom(hash)();
}

/** What `npm test` repeats: the check of a commit gives the same answer twice. */
const USUAL_SEED = 1;

/**
 * PAWL_SEED=<n> repeats a failure, PAWL_SEED=random draws a seed, which is what `npm run torture` does without it. One is drawn
 * for all files: test/vitest.config.ts hands it to the workers.
 */
export function seedOf({ PAWL_SEED: wished, PAWL_TORTURE: isTorture }: NodeJS.ProcessEnv): number {
  const drawn = () => Math.floor(Math.random() * 2 ** 31);
  if (!wished) return isTorture ? drawn() : USUAL_SEED;
  if (wished === 'random') return drawn();
  const number = Number(wished);
  if (!Number.isInteger(number)) throw new Error(`PAWL_SEED is ${wished}; use a whole number, or random`);
  return number;
}

export const seed = seedOf(process.env);

/** How many times more than usual is tried: `npm run torture` sets PAWL_TORTURE. */
export const torture = process.env.PAWL_TORTURE ? 10 : 1;
