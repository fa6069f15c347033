import { type Agent, createExecutor, type Executor, memoryStore, type RunCheckpoint } from 'pawl';
import { hang, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type BrokenSetup, brokenSetups, goodModels, payer, paying } from '../fixtures/broken-setups.ts';
import { until, type Warning } from '../fixtures/host.ts';
import { hostMachine, restoreHost, startHost } from '../fixtures/host-machine.ts';

const defaults = { waitLingerMs: 1, dueMs: 5 };
type Store = ReturnType<typeof memoryStore>;

const executorOf = (store: Store, agent: Agent, script: readonly ScriptedEntry[] = paying) =>
  createExecutor({ models: { fast: scriptedModel([...script]) }, agents: [agent], store, defaults });

/** A run that has worked, and waits for an approval. @returns the id of the wait */
async function waitingRun(
  store: Store,
  then?: (executor: Executor, waitId: string) => Promise<unknown>,
): Promise<string> {
  const agent = payer();
  const executor = executorOf(store, agent);
  const result = await executor.run(agent, { runId: 'r', prompt: 'Go.' });
  const [wait] = result.status === 'waiting' ? result.waits : [];
  await then?.(executor, wait?.id ?? '');
  await executor.shutdown();
  return wait?.id ?? '';
}

/** The approval has come, and no process has read it yet. */
const approvedRun = (store: Store) => waitingRun(store, (executor, waitId) => executor.control('r').approve(waitId));

/** A process whose setup is broken. */
function badProcess(store: Store, { models = goodModels, agent: more = {}, broken = (agent) => agent }: BrokenSetup) {
  const warned: Warning[] = [];
  const agent = payer(more);
  const executor = createExecutor({
    models: models(),
    agents: [broken(agent)],
    store,
    defaults,
    logger: { warn: (message, fields) => warned.push({ message, fields }) },
  });
  const given = () => warned.filter(({ message }) => message.startsWith('run: the setup of this process'));
  return { executor, agent: broken(agent), warned, given };
}

type Bad = ReturnType<typeof badProcess>;

interface Way {
  /** What the first process leaves; default: a run whose approval has come. */
  readonly before?: (store: Store) => Promise<unknown>;
  readonly get: (bad: Bad, left: unknown) => unknown;
}

const machine = ({ executor, agent }: { executor: Executor; agent: Agent }) => hostMachine(executor, agent);

/** How a process gets to a stored run. */
const ways: { readonly [name: string]: Way } = {
  recover: { get: ({ executor }) => executor.recover() },
  work: { get: ({ executor }) => void executor.work({ dueMs: 5 }) },
  drive: { get: ({ executor }) => executor.drive('r') },
  "drive('due')": { get: ({ executor }) => executor.drive('due') },
  'a second start': { get: ({ executor, agent }) => executor.run(agent, { runId: 'r', prompt: 'Go.' }) },
  'the sweep': {
    before: (store) => waitingRun(store),
    get: async ({ executor }, waitId) => {
      await executor.recover();
      await executor.control('r').approve(String(waitId));
    },
  },
  'a restored host': {
    before: async (store) => {
      const agent = payer();
      const executor = executorOf(store, agent, [...paying, hang()]);
      const host = startHost(machine({ executor, agent }));
      await until(async () => (await executor.waiting()).length > 0);
      const [wait] = await executor.waiting();
      await executor.control('r').approve(wait?.id ?? '');
      await until(async () => (await store.load('r'))?.iteration === 1);
      const snapshot = host.getPersistedSnapshot();
      await executor.shutdown();
      return snapshot;
    },
    get: (bad, snapshot) => void restoreHost(machine(bad), snapshot),
  },
  "drive: 'later'": {
    before: async (store) => {
      const agent = payer();
      const executor = executorOf(store, agent);
      await executor.start(agent, { runId: 'r', prompt: 'Go.' }, { drive: 'later' });
      await executor.shutdown();
    },
    get: ({ executor }) => void executor.work({ dueMs: 5 }),
  },
};

async function endsWell(store: Store): Promise<void> {
  const agent = payer();
  const good = createExecutor({ models: goodModels(), agents: [agent], store, defaults });
  const run = await good.start(agent, { runId: 'r', prompt: 'Go.' });
  expect(await run.result).toMatchObject({ status: 'ok', output: 'done' });
  await good.shutdown();
}

const cells = Object.keys(ways)
  .flatMap((way) => Object.keys(brokenSetups).map((fault) => ({ way, fault })))
  // `executor.logic` throws at once: no machine of a host can be restored with it.
  .filter(({ way, fault }) => way !== 'a restored host' || fault !== 'an agent that cannot be built');

describe('a stored run', () => {
  test.for(cells)(
    'is given back by $way of a process with $fault, and another one ends it (edges 1)',
    async ({ way, fault }) => {
      const store = memoryStore();
      const { before = approvedRun, get } = ways[way] as Way;
      const left = await before(store);
      const broken = brokenSetups[fault] as BrokenSetup;
      const bad = badProcess(store, broken);
      await get(bad, left);
      await until(() => bad.given().length > 0);
      expect(bad.given()).toMatchObject([
        { fields: { code: 'SETUP', agentId: 'payer', runs: 1, error: { code: broken.code } } },
      ]);
      expect(await store.outcomes.find('r')).toBeNull();
      await until(async () => ((await store.load('r')) as RunCheckpoint).setup !== undefined);
      const record = (await store.load('r')) as RunCheckpoint;
      expect(record).toMatchObject({ attempts: 0, setup: { code: broken.code, since: expect.any(Number) } });
      expect(record.parked).toBeUndefined();
      await bad.executor.shutdown();
      await endsWell(store);
    },
  );
});
