import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { memoryStore, type RunCheckpoint, type Wait } from 'pawl';
import { parseCheckpoint, toResumeState } from 'pawl/stores/kit';
import { callTool, hang } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { ProgressRedaction } from '../../src/record/redact-progress.ts';
import { beginProgress } from '../../src/run/progress.ts';
import { resumeProgress } from '../../src/run/resume.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { Redactor } from '../../src/values/redact.ts';
import { hostOf, toolOf, until } from '../fixtures/host.ts';
import { freshFolder } from '../fixtures/pinned-stores.ts';

/** What a released version wrote is never edited: these are the files as they were. */
const hashes = {
  waiting: 'd99b381243db9c845591b0497cf9e06a72f2dba1df871d8ef3945b7eeda71141',
  hosted: '51961a8375548efee9bff6e53cb71df6c581db0ecfd731719136f853a4653788',
};
type Pinned = keyof typeof hashes;
const pinned = Object.keys(hashes) as Pinned[];

const bytesOf = (name: Pinned) => readFileSync(new URL(`../fixtures/records/v2/${name}.json`, import.meta.url), 'utf8');
const recordOf = (name: Pinned) => JSON.parse(bytesOf(name)) as RunCheckpoint;
const readToday = (name: Pinned): RunCheckpoint => ({ ...recordOf(name), version: RECORD_VERSION });

describe.for(pinned)('the pinned record %s of version 2', (name) => {
  test('is what it was, byte for byte (checkpoint 6)', () => {
    expect(createHash('sha256').update(bytesOf(name)).digest('hex')).toBe(hashes[name]);
  });

  test('is read with all it holds (checkpoint 2, 3)', () => {
    expect(parseCheckpoint(recordOf(name))).toEqual(readToday(name));
  });

  test('comes out of a store as it went in, and a list shows its labels (checkpoint 2)', async () => {
    for (const store of [memoryStore(), sqliteStore({ path: `${freshFolder()}/runs.db` })]) {
      await store.save(recordOf(name));
      expect(await store.load('run-1')).toEqual(readToday(name));
      expect(await store.listInterrupted()).toMatchObject([{ runId: 'run-1', labels: recordOf(name).labels }]);
    }
  });

  test('becomes a resume state, and the progress of a run, with every field that a run continues from', () => {
    const { version: _, meta, updatedAt: __, revision: ___, messages, ...rest } = recordOf(name);
    const { fingerprint, parent, labels, thread, hosted, ...state } = rest;
    const resume = toResumeState(recordOf(name));
    expect(resume).toEqual({ ...state, history: messages });
    const { seq, critic, inputs, images, earlier, definition, ...head } = state;
    const identity = JSON.parse(JSON.stringify({ fingerprint, parent, labels, thread, hosted }));
    const progress = resumeProgress(beginProgress(meta, { version: '', hash: '' }, identity), resume);
    expect(progress).toMatchObject({ ...head, ...identity, meta });
  });
});

describe('a record of a run that waits', () => {
  test('can be cancelled', async () => {
    const store = memoryStore();
    await store.save(recordOf('waiting'));
    const host = hostOf({ store });
    await host.executor.control('run-1').cancel('no');
    expect(await store.load('run-1')).toBeNull();
  });

  test('is redacted in its texts: questions, prompts, notes, errors and answers; ids, digests and persons stay', () => {
    const { meta } = recordOf('waiting');
    const progress = resumeProgress(beginProgress(meta, { version: '', hash: '' }), toResumeState(recordOf('waiting')));
    const redacted = new ProgressRedaction(new Redactor(() => '***', 'record')).progress(progress);
    const waits = redacted.waiting?.waits as readonly Wait[];
    const pinnedWaits = recordOf('waiting').waiting?.waits as readonly Wait[];
    expect(waits.map(({ id, kind, callId }) => [id, kind, callId])).toEqual(
      pinnedWaits.map(({ id, kind, callId }) => [id, kind, callId]),
    );
    expect(waits[0]).toMatchObject({ prompt: '***', votes: [{ by: { id: 'ada' }, note: '***' }] });
    expect(waits[1]).toMatchObject({ question: '***', options: ['***', '***'], schema: { type: 'string' } });
    expect(waits[2]).toEqual(pinnedWaits[2]);
    expect(waits[5]).toMatchObject({ error: { code: 'MODEL', message: '***', cause: { message: '***' } } });
    const [, , note, ask] = redacted.openStep?.calls ?? [];
    expect(note).toMatchObject({ allowed: { by: [{ id: 'ada' }], input: { text: '***' }, note: '***' } });
    expect(ask).toMatchObject({ allowed: { by: 'policy' }, answers: ['***', { confirmed: true }, null] });
  });

  test('loses a waiting call whose input was redacted: no process makes it with what is left', () => {
    const { meta } = recordOf('waiting');
    const progress = resumeProgress(beginProgress(meta, { version: '', hash: '' }), toResumeState(recordOf('waiting')));
    const redactor = new Redactor((text) => text.replaceAll('kim', '***'), 'record');
    const [, send] = new ProgressRedaction(redactor).progress(progress).openStep?.calls ?? [];
    expect(send).toMatchObject({ state: 'done', result: { type: 'error-text' } });
  });
});

describe('a record of a run that a machine of a host began', () => {
  test('is continued, and its labels and what began it stay', async () => {
    const { openPhase: _, completedPhases: __, parent: ___, ...record } = recordOf('hosted');
    const store = memoryStore();
    await store.save({ ...record, completedPhases: [] });
    const host = hostOf({ script: [callTool('look'), hang()], tools: [toolOf('look')], store });
    const { resumed } = await host.executor.recover();
    expect(resumed).toMatchObject([{ runId: 'run-1' }]);
    await until(async () => (await store.load('run-1'))?.iteration === 5);
    const { fingerprint, labels, hosted } = record;
    expect(await store.load('run-1')).toMatchObject({ version: RECORD_VERSION, fingerprint, labels, hosted });
    await host.executor.shutdown();
  });
});
