import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { loadCheckpoint, type ResponseSnapshot } from 'pawl/fan-out';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { asked, freshPath, until } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

const KB = 1_024;
const write = (path: string, size: number) => callTool('write_file', { path, content: 'x'.repeat(size) });

/** A model that has proposed so many files of that size, and hangs then. */
async function proposing(files: number, size: number) {
  const path = freshPath();
  const writes = Array.from({ length: files }, (_, at) => write(`f${at}`, size));
  const call = asked({ models: { a: [...writes, hang(), reply('done')] }, path, root: freshFolder() });
  const turns: ResponseSnapshot[] = [];
  const running = call.start({ onTurn: (snapshot) => void turns.push(snapshot) });
  await until(async () => call.calls()[0] === files + 1 && (await loadCheckpoint(path))?.responses[0]?.steps === files);
  return { ...call, path, running, turns, leave: () => call.caller.abort() };
}

describe('proposed writes of a model that is at work', () => {
  test('they are in the file with each turn while they have 64 KB or less together (fan-out 4)', async () => {
    const { path, running, leave } = await proposing(4, 15 * KB);
    expect((await loadCheckpoint(path))?.responses[0]?.proposedWrites).toHaveLength(4);
    leave();
    await running;
  });

  test('more of them are not written again with each turn; the host gets all, and they are in the file when the model leaves off (fan-out 4)', async () => {
    const { path, running, turns, leave, start } = await proposing(8, 100 * KB);
    expect(statSync(path).size).toBeLessThan(2 * KB);
    expect(turns.at(-1)?.proposedWrites).toHaveLength(8);
    leave();
    const { responses } = await running;
    expect(responses[0]?.proposedWrites).toHaveLength(8);
    expect((await loadCheckpoint(path))?.responses[0]?.proposedWrites).toEqual(responses[0]?.proposedWrites);
    expect((await start({ signal: undefined } as never)).responses[0]?.proposedWrites).toHaveLength(8);
  });

  test('those that a killed process had not put into the file come from the record, also when no model is asked again (fan-out 5)', async () => {
    const { path, running, leave, start } = await proposing(8, 100 * KB);
    const before = readFileSync(path);
    leave();
    await running;
    // As a kill in the middle leaves it.
    writeFileSync(path, before);
    const { responses } = await start();
    expect(responses[0]).toMatchObject({ interrupted: true, steps: 8 });
    expect(responses[0]?.proposedWrites).toHaveLength(8);
    expect((await loadCheckpoint(path))?.responses[0]?.proposedWrites).toHaveLength(8);
  });
});
