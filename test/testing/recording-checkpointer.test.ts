import { recordingCheckpointer, recordingFactory } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { showMessages, stateOf } from '../../src/record/state.ts';
import { beginProgress } from '../../src/run/progress.ts';
import type { RunInfo } from '../../src/run/request.ts';
import { enterMessage } from '../../src/values/message.ts';

const progress = beginProgress(
  {
    runId: 'r',
    agentId: 'a',
    agentName: '',
    callerId: '',
    channelId: '',
    guildId: '',
    prompt: 'hi',
    modelTier: '',
    parentRunId: '',
  },
  { version: '1', hash: '' },
);

describe('a recording checkpointer', () => {
  test('keeps every saved state as it was then, its messages read', async () => {
    const checkpointer = recordingCheckpointer();
    const answer = enterMessage({ role: 'assistant', content: [{ type: 'text', text: 'ho' }] });
    const messages = [answer];
    await checkpointer.save(showMessages(stateOf(progress, { elapsedMs: 5, seq: 0 })));
    await checkpointer.save({ iteration: 1, messages }, { force: true });
    messages.push(answer);
    await checkpointer.save({ iteration: 2 });
    expect(checkpointer.states).toEqual([
      expect.objectContaining({
        iteration: 0,
        elapsedMs: 5,
        messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      }),
      { iteration: 1, messages: [answer] },
      { iteration: 2 },
    ]);
    expect(Object.getOwnPropertyDescriptor(checkpointer.states[0], 'messages')).toHaveProperty('value');
    expect(checkpointer.forced).toEqual([false, true, false]);
  });

  test('is durable, and counts how the run was finalised', async () => {
    const checkpointer = recordingCheckpointer();
    expect(checkpointer).toMatchObject({ durable: true, completed: 0, failed: 0, error: undefined });
    await checkpointer.complete();
    expect(checkpointer).toMatchObject({ completed: 1, failed: 0 });
    const error = new Error('down');
    await checkpointer.fail(error);
    expect(checkpointer).toMatchObject({ completed: 1, failed: 1, error });
  });
});

describe('a recording factory', () => {
  test('begins one checkpointer a run, and keeps what it was given', async () => {
    const factory = recordingFactory();
    const info = { runId: 'r' } as RunInfo;
    const claim = { runId: 'r', owner: 'o', epoch: 1, attempts: 1 };
    const first = await factory.begin(info);
    const second = await factory.begin(info, { claim });
    expect(factory.checkpointers).toEqual([first, second]);
    expect(first).not.toBe(second);
    expect(factory.infos[0]).toBe(info);
    expect(factory.options).toEqual([undefined, { claim }]);
    expect(factory.store).toBeUndefined();
  });
});
