import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadCheckpoint } from 'pawl/fan-out';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, toolOf } from '../fixtures/host.ts';
import { around, asked, freshPath, heldWithin, inItsTime, until } from './asking.ts';
import { freshFolder } from './fresh-folder.ts';

describe('a disk that fails in the end', () => {
  test('answers that cannot be moved are still in the checkpoint file, and the next call moves them and asks no model (fan-out 6)', async () => {
    const path = freshPath();
    const blocked = join(dirname(path), '.pawl', 'answers.json');
    mkdirSync(join(blocked, 'x'), { recursive: true });
    const call = asked({ models: { a: [reply('of a')] }, path });
    const result = await call.start();
    expect(result).toMatchObject({ interrupted: false, path, saveError: { code: 'STORE_UNAVAILABLE' } });
    expect(result.responses[0]?.text).toBe('of a');
    expect((await loadCheckpoint(path))?.responses[0]).toMatchObject({ text: 'of a', completed: true });
    const next = await call.start({ root: freshFolder() });
    expect([next.responses[0]?.text, next.saveError, call.calls(), existsSync(path)]).toEqual([
      'of a',
      undefined,
      [1],
      false,
    ]);
  });

  test('a checkpoint file that became unwritable costs no answer: it is in the result, with the error (fan-out 6)', async () => {
    const path = freshPath();
    const { call, running, open } = await heldWithin(path);
    await until(() => existsSync(path));
    rmSync(path);
    mkdirSync(join(path, 'x'), { recursive: true });
    open();
    const result = await inItsTime(call, running);
    expect(result).toMatchObject({ saveError: { code: 'STORE_UNAVAILABLE' }, responses: [{ text: 'of a' }] });
    expect(around(path).filter((name) => name.endsWith('.lock'))).toEqual([]);
  });

  test('a write that failed on the way is no error of the result once the file has all (fan-out 6)', async () => {
    const path = freshPath();
    const held = gate();
    const look = toolOf('look', 'read', (_, { callId }) => (callId === 'call-2' ? held.pass() : 'ok'));
    const call = asked({ models: { a: [callTool('look'), callTool('look'), reply('of a')] }, path, tools: [look] });
    const running = call.start({
      onEvent: (_, { type }) => {
        if (type !== 'run.started') return;
        rmSync(path);
        mkdirSync(path);
      },
    });
    await held.reached;
    const isNoted = () => call.warned.some(({ message }) => message.includes('could not be written'));
    await until(isNoted);
    rmSync(path, { recursive: true });
    held.open();
    const { responses, saveError } = await running;
    expect([responses[0]?.text, saveError, around(path)]).toEqual(['of a', undefined, ['.pawl']]);
  });

  test('a lock that cannot be released costs no answer (fan-out 6)', async () => {
    const path = freshPath();
    const call = asked({
      models: { a: [reply('of a')] },
      path,
      onResponse: () => {
        rmSync(`${path}.lock`);
        mkdirSync(`${path}.lock`);
      },
    });
    expect((await call.start()).responses[0]?.text).toBe('of a');
    expect(call.warned.map(({ message }) => message)).toEqual(['fan-out: the checkpoint file stays locked']);
  });

  test('a folder that cannot be written to rejects the call, and no model is asked (fan-out 3)', async () => {
    const call = asked({ models: { a: [hang()] }, path: '/proc/ask.json' });
    await expect(call.start()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(call.calls()).toEqual([0]);
  });
});
