/*
 * A process of its own for the tests of checkpoint files: `node saver-child.ts <role> <path> [argument]`. It says what it
 * does in lines of JSON.
 */
import { IncrementalSaver, saveCheckpoint, snapshotFromPartial } from 'pawl/fan-out';

const [role, path = '', argument = ''] = process.argv.slice(2);
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = () => new Promise<void>((resolve) => process.stdin.once('data', () => resolve()));

const roles: Readonly<Record<string, () => Promise<unknown>>> = {
  /** Holds a checkpoint file until it is killed, or told to go on: then it ends without a word. Or says why it cannot have it. */
  async hold() {
    const saver = new IncrementalSaver(path, 'Which?', ['a', 'b'], false);
    await saver.update('a', snapshotFromPartial('a', { text: 'of the child', steps: 1 })).then(
      () => say('held'),
      (error: { code?: unknown }) => say(error.code),
    );
    await told();
    process.exit(0);
  },

  /** Tries to claim a file that another holds, and ends in the middle of that. */
  async tryAndExit() {
    const saver = new IncrementalSaver(path, 'Which?', ['a', 'b'], false);
    const trying = saver.update('a', snapshotFromPartial('a', {}));
    process.nextTick(() => process.exit(0));
    await trying;
  },

  /** Writes a file so many times, as fast as it can. */
  async save() {
    const [name = '', times = ''] = argument.split(':');
    const prompt = name.repeat(20_000);
    const checkpoint = { version: 1, prompt, timestamp: 0, adapterIds: [], responses: [], verbose: false } as const;
    say('ready');
    await told();
    for (let i = 0; i < Number(times); i++) await saveCheckpoint(path, checkpoint);
    say('saved');
    process.stdin.destroy();
  },
};

// Whoever started it may go away in the middle: what is never told ends with the process.
void roles[role ?? '']?.();
