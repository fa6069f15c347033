import fc from 'fast-check';
import { createExecutor, defineAgent } from 'pawl';
import { callTool, callTools, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { fileTools } from '../../src/edits/file-tools.ts';
import { Overlay } from '../../src/edits/overlay.ts';
import { newRoot, put } from './folder.ts';
import { type Asked, RecordedRun } from './recorded.ts';

const paths = ['a', 'b', 'd/c', 'd', 'gone', '../x'];
const files = { a: '1', b: '2', 'd/c': '3' };

const asked: fc.Arbitrary<Asked> = fc
  .record({
    name: fc.constantFrom('read_file', 'write_file', 'delete_file'),
    path: fc.constantFrom(...paths),
    content: fc.constantFrom('', '1', '2', '3', 'x'),
  })
  .map(({ name, path, content }) => ({
    name: name as Asked['name'],
    input: name === 'write_file' ? { path, content } : { path },
  }));

/** A message of a model, what a crash in the middle of its calls loses, and what somebody edits meanwhile. */
const steps = fc.array(
  fc.record({
    calls: fc.array(asked, { minLength: 1, maxLength: 5 }),
    lost: fc.option(fc.array(fc.boolean(), { minLength: 5, maxLength: 5 })),
    edit: fc.option(
      fc.record({ path: fc.constantFrom('a', 'b', 'd/c', 'gone'), content: fc.constantFrom('1', 'edited') }),
    ),
    isRestarted: fc.boolean(),
  }),
  { maxLength: 8 },
);

describe('after a crash the queue of writes (fan-out 7)', () => {
  test('is what it was, from the record alone, whichever results the crash has lost', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const root = newRoot(files);
        const run = new RecordedRun(root);
        for (const { calls, lost, edit, isRestarted } of all) {
          run.begin(calls);
          if (lost) {
            await run.work((i) => !lost[i]);
            run.restart();
          }
          if (edit) put(root, edit.path, edit.content);
          await run.work(() => true);
          expect(writesOf(run)).toEqual(run.overlay.writes());
          run.end();
          expect(writesOf(run)).toEqual(run.overlay.writes());
          if (isRestarted) run.restart();
        }
        await expectSameReads(root, run);
      }),
      { numRuns: process.env.PAWL_TORTURE === '1' ? 3_000 : 20 },
    );
  }, 300_000);

  test('is the same as without the crash, when the calls of a step are for different files', async () => {
    const distinct = fc.uniqueArray(asked, {
      maxLength: 4,
      selector: ({ input }) => input.path?.toString().split('/')[0],
    });
    const withLosses = fc.array(fc.tuple(distinct, fc.array(fc.boolean(), { minLength: 4, maxLength: 4 })), {
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(withLosses, async (all) => {
        const root = newRoot(files);
        const [smooth, rough] = [new RecordedRun(root), new RecordedRun(root)];
        for (const [calls, lost] of all) {
          for (const run of [smooth, rough]) run.begin(calls);
          await rough.work((i) => !lost[i]);
          rough.restart();
          for (const run of [smooth, rough]) {
            await run.work(() => true);
            run.end();
          }
        }
        expect(rough.overlay.writes()).toEqual(smooth.overlay.writes());
      }),
      { numRuns: process.env.PAWL_TORTURE === '1' ? 3_000 : 20 },
    );
  }, 300_000);

  test('is what it was, of a run of the executor', async () => {
    const root = newRoot(files);
    const overlay = new Overlay(root);
    const agent = defineAgent({ id: 'editor', instructions: 'Edit.', tools: fileTools(overlay) });
    const model = scriptedModel([
      callTools([
        { name: 'read_file', input: { path: 'a' } },
        { name: 'write_file', input: { path: 'a', content: 'new' } },
        { name: 'write_file', input: { path: '../x', content: 'bad' } },
        { name: 'delete_file', input: { path: 'b' } },
      ]),
      callTool('write_file', { path: 'd/c', content: 'new' }),
      callTool('write_file', { path: 'd/c', content: '3' }),
      reply('done'),
    ]);
    const { messages } = await createExecutor({ models: { fast: model } }).run(agent, { prompt: 'Go.' });
    const again = new Overlay('/nowhere');
    again.replay({ messages });
    expect(again.writes()).toEqual(overlay.writes());
    expect(again.writes().map(({ path }) => path)).toEqual(['a', 'b']);
    // Once more gives no more.
    again.replay({ messages });
    expect(again.writes()).toEqual(overlay.writes());
  });

  test('is empty for a record that says nothing of it, or what no file tool has said', () => {
    const overlay = new Overlay('/nowhere');
    const call = {
      type: 'tool-call',
      toolCallId: '1',
      toolName: 'write_file',
      input: { path: 'a', content: 'x' },
    } as const;
    const values = [null, 'text', {}, { path: 1, base: null }, { path: 'a' }, { path: 'a', base: 7 }];
    for (const value of values) {
      const result = {
        type: 'tool-result',
        toolCallId: '1',
        toolName: 'write_file',
        output: { type: 'json', value },
      } as const;
      overlay.replay({
        messages: [
          { role: 'assistant', content: [call] },
          { role: 'tool', content: [result] },
        ],
      });
      expect(overlay.writes()).toEqual([]);
    }
  });
});

/** What a model that goes on after a restart would read, and be told; asked last, because asking is noted. */
async function expectSameReads(root: string, run: RecordedRun): Promise<void> {
  const replayed = new Overlay(root);
  replayed.replay(run.record);
  for (const path of paths) {
    const look = (overlay: Overlay) => overlay.read(path).catch((error: Error) => error.message);
    expect(await look(replayed)).toEqual(await look(run.overlay));
    const put = (overlay: Overlay) => overlay.write(path, 'last').catch((error: Error) => error.message);
    expect(await put(replayed)).toEqual(await put(run.overlay));
  }
}

function writesOf({ record }: RecordedRun) {
  const replayed = new Overlay('/nowhere');
  replayed.replay(record);
  return replayed.writes();
}
