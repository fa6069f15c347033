import { DatabaseSync } from 'node:sqlite';
import { KnownModules } from '../../src/cli/open/known-modules.ts';
import { identityOfStore, placeOf } from '../../src/cli/open/store-place.ts';
import type { RunCheckpoint } from '../../src/record/checkpoint.ts';
import { RECORD_VERSION } from '../../src/record/checkpoint.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { type HeadRow, headChecksum } from '../../src/store/sqlite/records.ts';
import { noUsage } from '../../src/values/usage.ts';
import { agentFile, stateHome } from './pawl.ts';

type Change = { readonly [Key in 'runId' | 'agentId' | 'prompt' | 'module']?: string } & Partial<RunCheckpoint>;

/** A run of the counter that was cut off after its first step. */
export function interruptedRun({ runId = 'r1', agentId = 'counter', prompt = 'go', module, ...rest }: Change = {}) {
  const path = module ?? agentFile('counter');
  const record: RunCheckpoint = {
    version: RECORD_VERSION,
    meta: {
      runId,
      agentId,
      agentName: 'Counter',
      callerId: '',
      channelId: '',
      guildId: '',
      prompt,
      modelTier: 'fast',
      parentRunId: '',
    },
    messages: [
      { role: 'user', content: [{ type: 'text', text: prompt }] },
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'count', input: { n: 1 } }],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'a', toolName: 'count', output: { type: 'text', value: 'number 1' } },
        ],
      },
    ],
    iteration: 1,
    completedPhases: [],
    updatedAt: Date.now() - 5_000,
    revision: 1,
    usage: { ...noUsage, inputTokens: 10, outputTokens: 5 },
    attempts: 0,
    ...rest,
  };
  if (path !== '') modules.set(record.meta, path);
  return record;
}

/** With which module this user has started a run, by the `meta` of its record. */
const modules = new WeakMap<object, string>();

export async function storeRuns(path: string, ...records: readonly RunCheckpoint[]): Promise<void> {
  const store = sqliteStore({ path, durability: 'process' });
  const identity = identityOfStore(placeOf(path));
  const known = new KnownModules(stateHome);
  for (const record of records) {
    await store.save(record);
    const module = modules.get(record.meta);
    if (module) known.remember({ store: identity, runId: record.meta.runId }, module);
  }
  await store.close();
}

/** How many steps a run has in the store; undefined when it is not there. */
export async function stepsOf(path: string, runId: string): Promise<number | undefined> {
  const store = sqliteStore({ path });
  const record = await store.load(runId);
  await store.close();
  return record?.iteration;
}

export function execute(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

/** No list looks at messages: only reading the record shows it. */
export function damageMessages(path: string, runId: string): void {
  const no = `(SELECT no FROM runs WHERE run_id = '${runId}')`;
  execute(
    path,
    `UPDATE messages SET messages = replace(messages, 'number', 'numbed') WHERE id >= ${no} * 16777216 AND id < (${no} + 1) * 16777216`,
  );
}

/** Makes a stored record look as if a later version had written it. */
export function makeTooNew(path: string): void {
  const db = new DatabaseSync(path);
  const row = db.prepare('SELECT * FROM heads').get() as unknown as HeadRow & { no: number };
  const head = JSON.stringify({ ...JSON.parse(row.head), version: 99 });
  const checksum = headChecksum({ ...row, head, version: 99 });
  db.prepare('UPDATE heads SET head = ?, version = 99, checksum = ? WHERE no = ?').run(head, checksum, row.no);
  db.close();
}
