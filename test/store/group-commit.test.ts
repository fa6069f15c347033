import { describe, expect, test } from 'vitest';
import { GroupCommit, giveAnswers, settled, settledLater } from '../../src/store/group-commit.ts';
import { LeaseLostError } from '../../src/values/errors.ts';

/** Commits that last one turn of the event loop, and note down what each has. */
function commits() {
  const groups: string[][] = [];
  const writes = new GroupCommit<() => string>({
    begin: () => new Promise((resolve) => setImmediate(resolve)),
    perform: async (take) => {
      const answers = take().map((job) => settled(job, (write) => write()));
      groups.push(answers.map((each) => ('value' in each ? String(each.value) : 'refused')));
      await new Promise((resolve) => setImmediate(resolve));
      giveAnswers(answers);
    },
  });
  return { groups, writes };
}

const refuse = () => {
  throw new LeaseLostError('lost');
};

describe('a group commit', () => {
  test('takes the writes that wait when it begins, in the order of the calls', async () => {
    const { groups, writes } = commits();
    const first = [writes.add(() => 'a'), writes.add(() => 'b')];
    await first[0];
    await Promise.all([...first, writes.add(() => 'c'), writes.add(() => 'd')]);
    expect(groups).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  test('refuses one write, or drops an aborted one, and keeps the others', async () => {
    const { groups, writes } = commits();
    const signal = AbortSignal.abort(new Error('stop'));
    const asked = [writes.add(() => 'a'), writes.add(refuse), writes.add(() => 'b', { signal }), writes.add(() => 'c')];
    const codes = await Promise.all(asked.map((each) => each.catch((error) => error.code ?? error.message)));
    expect(codes).toEqual(['a', 'LEASE_LOST', 'stop', 'c']);
    expect(groups).toHaveLength(1);
  });

  test('rejects all of a group whose commit fails, and performs the next', async () => {
    let failures = 1;
    const writes = new GroupCommit<string>({
      perform: async (take) => {
        const group = take();
        await Promise.resolve();
        if (failures-- > 0) throw new Error('the disk is full');
        giveAnswers(group.map((job) => ({ job, value: job.write })));
      },
    });
    await expect(writes.add('a')).rejects.toThrow('the disk is full');
    expect(await writes.add('b')).toBe('b');
  });

  test('that cannot begin rejects all that wait', async () => {
    const writes = new GroupCommit<string>({ begin: () => Promise.reject(new Error('locked')), perform: () => {} });
    const asked = await Promise.allSettled([writes.add('a'), writes.add('b')]);
    expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await writes.end();
  });

  test('has one queue for each key, which do not wait for each other', async () => {
    const begun = Promise.withResolvers<void>();
    const writes = new GroupCommit<string>({
      begin: (key) => (key === 'slow' ? begun.promise : Promise.resolve()),
      perform: async (take) => giveAnswers(await Promise.all(take().map((job) => settledLater(job, async (x) => x)))),
    });
    const slow = writes.add('s', { key: 'slow' });
    expect(await writes.add('q', { key: 'quick' })).toBe('q');
    await writes.idle('quick');
    begun.resolve();
    await writes.idle();
    expect(await slow).toBe('s');
  });

  test('never has more than 512 writes', async () => {
    const { groups, writes } = commits();
    await Promise.all(Array.from({ length: 1_100 }, (_, i) => writes.add(() => String(i))));
    expect(groups.map(({ length }) => length)).toEqual([512, 512, 76]);
  });
});
