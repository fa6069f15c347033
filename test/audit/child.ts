/*
 * A process of its own for the tests of audits: `node child.ts <role> <path> <argument>`. It says what it does in lines of
 * JSON, and works on until it is done or killed.
 */
import { DatabaseSync } from 'node:sqlite';
import { createAudit } from '../../src/audit/audit.ts';
import { info, tool, totals, usage } from './run-facts.ts';

const [role = '', path = '', argument = ''] = process.argv.slice(2);
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = () => new Promise<void>((resolve) => process.stdin.once('data', () => resolve()));

const roles: Readonly<Record<string, () => Promise<void>>> = {
  /** Takes down 20 runs of 10 steps each, all at once, and ends. */
  async record() {
    const audit = createAudit({ path });
    const runs = Array.from({ length: 20 }, (_, i) => audit.startRun(info(`${argument}-${i}`)));
    for (let step = 1; step <= 10; step++) {
      for (const run of runs) {
        run.onTool?.(tool({ step }));
        run.onStep?.({ step, usage: usage(step), tools: ['lookup'] });
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await Promise.all(runs.map((run) => run.close('ok', 'done', undefined, totals({ iterations: 10 }))));
    say(audit.dropped);
  },

  /** Takes down one step after the other for ever; says each once a query has seen it. */
  async steps() {
    const audit = createAudit({ path });
    const run = audit.startRun(info('run'));
    for (let step = 1; ; step++) {
      run.onStep?.({ step, usage: usage(step), tools: [] });
      say((await audit.runs())[0]?.iterations);
    }
  },

  /** Ends without closing anything. */
  async forget() {
    const audit = createAudit({ path });
    audit.startRun(info('run')).onStep?.({ step: 1, usage: usage(1), tools: [] });
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
