import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { memoryStore } from 'pawl';
import { importRuns, readRuns, replay } from 'pawl/lab';
import { expect, test } from 'vitest';
import { hostOf } from '../fixtures/host.ts';
import { exportedRuns, pinnedAgents } from './pinned-exports.ts';
import { allSame } from './recorded.ts';

const stores = fileURLToPath(new URL('../fixtures/stores', import.meta.url));
// A release adds its own: `node -C pawl-source test/toolchain/pin-stores.ts v<version> runs`.
const pinned = globSync('*/runs.jsonl', { cwd: stores });

test.for(['today', ...pinned])(
  'the runs that %s exported are read, imported and replayed as they were (lab 23, 32)',
  async (from) => {
    const lines = from === 'today' ? await exportedRuns() : [readFileSync(`${stores}/${from}`, 'utf8')];
    const seen: string[] = [];
    const { desk, helper, line } = pinnedAgents;
    const agents = { desk, helper, line };
    for await (const run of readRuns(lines)) {
      seen.push(`${run.agentId} ${run.status}`);
      const report = await replay(run, { agent: agents[run.agentId as 'desk'], agents: [helper] });
      expect(report).toMatchObject({ ...allSame, messages: run.messages, steps: run.steps });
    }
    expect(seen).toEqual(['desk ok', 'helper ok', 'line ok', 'desk error', 'desk ok', 'desk ok']);
    const { executor } = hostOf({ store: memoryStore() });
    expect((await importRuns(executor, lines)).imported.length).toBe(seen.length);
  },
);
