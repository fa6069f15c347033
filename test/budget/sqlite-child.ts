/*
 * A process of its own for the tests of budgets in SQLite: `node sqlite-child.ts <role> <path> <argument>`. It says what it
 * does in lines of JSON, and works on until it is done or killed.
 */
import { DatabaseSync } from 'node:sqlite';
import { createBudget } from '../../src/budget/budget.ts';
import { sqliteBudget } from '../../src/budget/sqlite.ts';
import { noUsage } from '../../src/values/usage.ts';

const [role = '', path = '', argument = ''] = process.argv.slice(2);
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = () => new Promise<void>((resolve) => process.stdin.once('data', () => resolve()));
const expected = { outputTokens: 0, seconds: 0 };
const estimate = (key: string, inputTokens: number) => ({
  key,
  runId: 'run',
  modelTier: 'fast',
  model: 'a/b',
  inputTokens,
});

const roles: Readonly<Record<string, () => Promise<void>>> = {
  /** Tries 50 calls of 10 tokens, all at once; says how many were let through, and counts these. */
  async spend() {
    const budget = createBudget({ tokens: 1_000, expected, store: sqliteBudget({ path }) });
    say('ready');
    await told();
    const wishes = Array.from({ length: 50 }, (_, i) => budget.reserve('ada', estimate(`${argument}:${i}`, 10)));
    const granted = (await Promise.allSettled(wishes)).filter((each) => each.status === 'fulfilled');
    const usage = { ...noUsage, inputTokens: 10 };
    await Promise.all(granted.map(({ value }) => budget.commit(value, { usage, seconds: 0 })));
    say(granted.length);
    process.stdin.destroy();
  },

  /** Counts call after call of one token; says each once it is counted. */
  async count() {
    const budget = createBudget({ tokens: 1e9, expected, store: sqliteBudget({ path }) });
    for (let turn = 1; ; turn++) {
      const reservation = await budget.reserve('ada', estimate(`run:${turn}`, 1));
      await budget.commit(reservation, { usage: { ...noUsage, inputTokens: 1 }, seconds: 0 });
      say(turn);
    }
  },

  /** Holds the write lock until told to let go. */
  async lock() {
    const db = new DatabaseSync(path);
    db.exec('BEGIN IMMEDIATE');
    say('locked');
    await told();
    db.exec('COMMIT');
    process.stdin.destroy();
  },
};

await roles[role]?.();
