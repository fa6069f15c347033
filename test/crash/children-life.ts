import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { treeOf } from './children-agents.ts';
import { type Failpoint, Failpoints, failingModel, failingStore } from './failpoints.ts';

export interface ChildrenJob {
  readonly folder: string;
  readonly failpoint?: Failpoint;
}

/** One host with a tree of runs, in any process: runs the tree to its end, and writes the result down. */
export async function treeLife({ folder, failpoint }: ChildrenJob, say: (line: string) => void): Promise<void> {
  const points = new Failpoints(failpoint, say);
  const storage = sqliteStore({ path: join(folder, 'runs.db') });
  const { agent, palette, model } = treeOf(folder, points);
  const executor = createExecutor({
    models: { fast: failingModel(model, points) },
    agents: [agent],
    store: failingStore(storage, points),
    ports: { palette },
  });
  say('started\n');
  await executor.recover();
  const result = await (executor.get('run-1')?.result ?? executor.run(agent, { runId: 'run-1', prompt: 'all' }));
  writeFileSync(join(folder, 'result.tmp'), JSON.stringify(result));
  renameSync(join(folder, 'result.tmp'), join(folder, 'result.json'));
  say('ended\n');
  await executor.shutdown();
  await storage.close();
}
