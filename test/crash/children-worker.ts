// One process of a host with a tree of runs, to be killed: node -C pawl-source children-worker.ts '<job as JSON>'
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createExecutor } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { births } from '../../src/run/identity.ts';
import { birthOf } from '../fixtures/child-id.ts';
import { treeOf } from './children-agents.ts';
import { type Failpoint, Failpoints, failingModel, failingStore } from './failpoints.ts';

export interface ChildrenJob {
  readonly folder: string;
  readonly failpoint?: Failpoint;
}

births.make = birthOf;
const { folder, failpoint } = JSON.parse(process.argv[2] ?? '') as ChildrenJob;
const points = new Failpoints(failpoint);
const storage = sqliteStore({ path: join(folder, 'runs.db') });
const { agent, palette, model } = treeOf(folder, points);
const executor = createExecutor({
  models: { fast: failingModel(model, points) },
  agents: [agent],
  store: failingStore(storage, points),
  ports: { palette },
});
process.stdout.write('started\n');
await executor.recover();
const result = await (executor.get('run-1')?.result ?? executor.run(agent, { runId: 'run-1', prompt: 'all' }));
writeFileSync(join(folder, 'result.tmp'), JSON.stringify(result));
renameSync(join(folder, 'result.tmp'), join(folder, 'result.json'));
process.stdout.write('ended\n');
await executor.shutdown();
await storage.close();
