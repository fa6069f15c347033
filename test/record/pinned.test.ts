import { createHash } from 'node:crypto';
import { memoryStore, type RunOutcome } from 'pawl';
import { parseCheckpoint, toResumeState } from 'pawl/stores/kit';
import { reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { bytesOf, type Pinned, pinned, recordOf, requestIn } from '../fixtures/records.ts';

/** What a released version wrote is never edited: these are the files as they were. */
const hashes: Record<Pinned, string> = {
  first: 'e34409cbd40a3dc22f0bdc8314f69365c9838b050f2301d9054ac8fe541b2b59',
  'open-step': '89371f5d7aae83ef084eabf131419ae828c2775692db381890faab74798981ad',
  outcome: '509d68cbe37d41d37df716dff0742b0bf33e069038215d7ad4da00ade2a89d3d',
  parked: 'e1368d0fd1ed87031dd2f2a07f22cc0aa2ce4f21f006d7c6fa7894f737b1ea2f',
  'unknown-fields': '33ce6de7d2f7dc9baec572bc7ff5cb97b4624f99dc1ffa89181e97d91dfcdf72',
};

async function holding(name: Pinned) {
  const store = memoryStore();
  await store.save(recordOf(name));
  return store;
}

const seen: string[] = [];
const tools = (['look', 'send', 'note'] as const).map((name) =>
  toolOf(name, name === 'look' ? 'read' : name === 'send' ? 'once' : 'idempotent', (_, { callId, attempt }) => {
    seen.push(`${callId} attempt ${attempt}`);
    return 'again';
  }),
);

describe.for(pinned)('the pinned record %s of version 1', (name) => {
  test('is what it was, byte for byte (checkpoint 6)', () => {
    expect(createHash('sha256').update(bytesOf(name)).digest('hex')).toBe(hashes[name]);
  });

  test('is read with all it holds (checkpoint 2, 3)', () => {
    expect(parseCheckpoint(recordOf(name))).toEqual({ ...recordOf(name), version: RECORD_VERSION });
  });

  test('comes out of a store as it went in (checkpoint 2)', async () => {
    expect(await (await holding(name)).load('run-1')).toEqual({ ...recordOf(name), version: RECORD_VERSION });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test('becomes a resume state with every field that a run continues from', () => {
    const { version: _, meta: __, updatedAt: ___, revision: ____, messages, ...rest } = recordOf(name);
    expect(toResumeState(recordOf(name))).toEqual({ ...rest, history: messages });
  });
});

describe('a run that continues from the pinned record', () => {
  test('open-step: done stays, planned and idempotent run, the once call does not; totals continue (executor 12, 13, 14)', async () => {
    seen.length = 0;
    // The vendor that signed the thoughts of the record.
    const model = { ...scriptedModel([reply('end')]), provider: 'anthropic.messages' };
    const host = hostOf({ models: { fast: model }, tools, store: await holding('open-step') });
    const result = await host.run(requestIn(recordOf('open-step')));
    expect(seen).toEqual(['call-4 attempt 3', 'call-5 attempt 1']);
    expect(result).toMatchObject({ status: 'ok', iterations: 3, usage: { inputTokens: 130, cacheReadTokens: 64 } });
    expect(model.calls[0]?.messages.slice(0, 3)).toEqual(recordOf('open-step').messages);
    expect(model.calls[0]?.messages[4]?.content).toMatchObject([
      { toolCallId: 'call-2', output: { value: 'b' } },
      { toolCallId: 'call-3', output: { type: 'error-text' } },
      { toolCallId: 'call-4', output: { value: 'again' } },
      { toolCallId: 'call-5', output: { value: 'again' } },
    ]);
  });

  test('first: asks the model with prompt and image', async () => {
    const host = hostOf({ script: [reply('end')], tools, store: await holding('first') });
    await host.run(requestIn(recordOf('first')));
    expect(host.model.calls[0]?.messages).toEqual(recordOf('first').messages);
  });

  test('outcome: is delivered with its id, and the record goes (finalize 6)', async () => {
    const delivered: RunOutcome[] = [];
    const store = await holding('outcome');
    const host = hostOf({
      script: [],
      tools,
      store,
      onOutcome: (outcome) => void delivered.push(outcome),
    });
    await host.executor.recover();
    await until(async () => (await store.listInterrupted()).length === 0);
    await settle();
    expect(delivered).toEqual([recordOf('outcome').outcome]);
  });

  test('parked: is listed with its reason and refused', async () => {
    const store = await holding('parked');
    expect(await store.listInterrupted()).toMatchObject([
      { status: 'parked', attempts: 3, reason: recordOf('parked').parked?.reason },
    ]);
    const host = hostOf({ script: [], tools, store });
    expect(await host.run(requestIn(recordOf('parked')))).toMatchObject({ error: { code: 'RUN_PARKED' } });
  });

  test('unknown-fields: provider options and fields of parts go to the model as they are, a dropped field is ignored (checkpoint 2, 6)', async () => {
    const host = hostOf({ script: [reply('end')], tools, store: await holding('unknown-fields') });
    const result = await host.run(requestIn(recordOf('unknown-fields')));
    expect(result.status).toBe('ok');
    expect(host.model.calls[0]?.messages).toEqual(recordOf('unknown-fields').messages);
  });
});
