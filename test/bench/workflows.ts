import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CheckpointStore, createExecutor, defineTool, defineWorkflow, memoryStore, step } from 'pawl';
import { sqliteStore } from 'pawl/stores/sqlite';
import { assign, setup } from 'xstate';
import { childNode } from './child-node.ts';
import { type Cost, inFolder, measured, median } from './measure.ts';
import type { Broken, Part, Row } from './report.ts';
import { amount } from './report.ts';
import { bench, checkEnded, RESULT } from './workload.ts';

const restingWorker = fileURLToPath(new URL('./resting-worker.ts', import.meta.url));

/** Workflows beside agents that do the same: a transition with one `read` call, and a step with one. */
export async function workflowRows(isQuick: boolean): Promise<Part> {
  // All of it ends within five minutes, also beside other work.
  const alone = await besideAgents({ runs: isQuick ? 5 : 10, steps: 100, times: isQuick ? 2 : 5 });
  const crowd = await besideAgents({ runs: 1_000, steps: 10, times: isQuick ? 1 : 3, isWarm: true });
  const timers = await timersDue(isQuick ? 1_000 : 10_000, isQuick ? 6_000 : 60_000);
  return {
    rows: [
      cpuRow(alone),
      throughputRow(crowd),
      restingRow(isQuick ? 1_000 : 2_000),
      timers.row,
      ...(await storedRows(isQuick ? 1_000 : 10_000)),
    ],
    broken: timers.broken,
  };
}

interface Work {
  /** Runs at once. */
  readonly runs: number;
  /** Steps of an agent, or transitions of a workflow, each with one call. */
  readonly steps: number;
  readonly times: number;
  /** Other work has warmed up: the first turn counts, too. */
  readonly isWarm?: true;
}

interface Beside {
  readonly work: Work;
  readonly workflows: readonly Cost[];
  readonly agents: readonly Cost[];
}

/** Both take turns: the mood of a machine changes within minutes. The first turn of all warms up. */
async function besideAgents(work: Work): Promise<Beside> {
  const [workflows, agents]: [Cost[], Cost[]] = [[], []];
  for (let time = work.isWarm ? 1 : 0; time <= work.times; time++) {
    const [workflow, agent] = [await costOfWorkflows(work), await costOfAgents(work)];
    if (time > 0) workflows.push(workflow);
    if (time > 0) agents.push(agent);
  }
  return { work, workflows, agents };
}

function costOfAgents({ runs, steps }: Work): Promise<Cost> {
  return inFolder(async (folder) => {
    const { run, close } = bench({ path: join(folder, 'pawl.db'), steps });
    const cost = await measured(async () => {
      for (const result of await Promise.all(Array.from({ length: runs }, () => run()))) checkEnded(result, steps);
    });
    await close();
    return cost;
  });
}

const lookup = defineTool({
  name: 'lookup',
  description: 'Looks a piece up.',
  input: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  effect: 'read',
  execute: async () => RESULT,
});

interface Counted {
  readonly left: number;
  readonly chars: number;
}

/** Looks up one piece after the other, then waits for `end` or is done. */
function collecting(steps: number, last: 'done' | 'waiting' = 'done') {
  const machine = setup({
    types: { context: {} as Counted, events: {} as { type: 'end' } },
    actors: { lookup: step(lookup) },
    guards: { isLast: ({ context }) => context.left <= 1 },
    actions: {
      count: assign({
        left: ({ context }) => context.left - 1,
        chars: ({ context, event }) => context.chars + String((event as { output?: unknown }).output).length,
      }),
    },
  }).createMachine({
    context: { left: steps, chars: 0 },
    initial: 'looking',
    states: {
      looking: {
        invoke: {
          src: 'lookup',
          input: ({ context }) => ({ key: `piece-${context.left}` }),
          onDone: [
            { guard: 'isLast', target: last, actions: 'count' },
            { target: 'looking', reenter: true, actions: 'count' },
          ],
        },
      },
      waiting: { on: { end: 'done' } },
      done: { type: 'final' },
    },
    output: ({ context }) => context,
  });
  return defineWorkflow({ id: 'collecting', machine });
}

function costOfWorkflows({ runs, steps }: Work): Promise<Cost> {
  return inFolder(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'pawl.db') });
    const workflow = collecting(steps);
    const executor = createExecutor({ store, workflows: [workflow] });
    const cost = await measured(async () => {
      const results = await Promise.all(Array.from({ length: runs }, () => executor.run(workflow, {} as never)));
      for (const { status, data } of results)
        if (status !== 'ok' || (data as Counted).chars !== steps * RESULT.length)
          throw new Error(`a workflow ended ${status}: ${JSON.stringify(data)}`);
    });
    await executor.shutdown();
    await store.close();
    return cost;
  });
}

function cpuRow({ work: { runs, steps }, workflows, agents }: Beside): Row {
  const value = median(workflows.map(({ cpuMs }, i) => cpuMs / (agents[i]?.cpuMs ?? Number.NaN)));
  const each = (costs: readonly Cost[]) => (median(costs.map(({ cpuMs }) => cpuMs)) / (runs * steps)).toFixed(3);
  const note = `${each(workflows)} ms, a step of an agent ${each(agents)} ms`;
  return { what: 'CPU a transition with one read call', value, unit: 'x', budget: 1.2, note };
}

function throughputRow({ work: { runs, steps }, workflows, agents }: Beside): Row {
  const value = median(workflows.map(({ wallMs }, i) => (agents[i]?.wallMs ?? Number.NaN) / wallMs));
  const rate = (costs: readonly Cost[]) =>
    amount((1_000 * runs * steps) / median(costs.map(({ wallMs }) => wallMs)), 'steps/s');
  const note = `${rate(workflows)}, agents ${rate(agents)}`;
  return { what: `throughput, ${runs} workflows at once`, value, unit: 'x', budget: 0.9, isFloor: true, note };
}

function restingRow(runs: number): Row {
  const bytes = Number(childNode('--expose-gc', restingWorker, String(runs), 'workflow'));
  const note = 'heap of a workflow that waits for a timer in its store';
  return { what: `${runs} resting workflows, each`, value: Math.max(0, bytes) / 1_000, unit: 'KB', budget: 1, note };
}

/** Runs that are started at once. */
const GROUP = 100;

/** Workflows whose timers are due within a time, in one process. */
function timersDue(runs: number, withinMs: number): Promise<{ row: Row; broken: readonly Broken[] }> {
  return inFolder(async (folder) => {
    const store = sqliteStore({ path: join(folder, 'pawl.db'), durability: 'process' });
    const fired: number[] = [];
    const machine = setup({
      types: { input: {} as { ms: number }, context: {} as { ms: number } },
      delays: { asked: ({ context }) => context.ms },
      actions: { note: () => void fired.push(Date.now()) },
    }).createMachine({
      context: ({ input }) => input,
      initial: 'waiting',
      states: { waiting: { after: { asked: { target: 'done', actions: 'note' } } }, done: { type: 'final' } },
    });
    const workflow = defineWorkflow({ id: 'timed', machine });
    const executor = createExecutor({ store, workflows: [workflow], defaults: { waitLingerMs: 1 } });
    await executor.recover();
    const start = async (count: number, dueAt: (nth: number) => number) => {
      for (let first = 0; first < count; first += GROUP) {
        const group = Array.from({ length: Math.min(GROUP, count - first) }, (_, i) => {
          const ms = Math.max(0, Math.round(dueAt(first + i) - Date.now()));
          return executor.run(workflow, { input: { ms } });
        });
        await Promise.all(group);
      }
    };
    // All rest before the first is due. A few that are never due say how long that takes here.
    const sampledAt = Date.now();
    await start(5 * GROUP, () => Number.MAX_SAFE_INTEGER);
    const begin = Date.now() + 1_000 + 1.3 * runs * ((Date.now() - sampledAt) / (5 * GROUP));
    await start(runs, (nth) => begin + (nth / runs) * withinMs);
    const restMs = Date.now() - begin;
    const latest = begin + withinMs + 40_000;
    const before = process.cpuUsage();
    while (fired.length < runs && Date.now() < latest) await new Promise((resolve) => setTimeout(resolve, 50));
    const { user, system } = process.cpuUsage(before);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const lateMs = Math.max(...fired) - (begin + withinMs);
    await executor.shutdown();
    await store.close();
    const note = `all were resting ${amount(Math.max(0, -restMs) / 1_000, 's')} before the first was due; the last of ${fired.length} fired ${amount(lateMs / 1_000, 's')} after its time, ${((user + system) / 1_000 / fired.length).toFixed(2)} ms of CPU each`;
    const what = `${runs} timers due within ${withinMs / 1_000} s, the last fired after`;
    const row: Row = { what, value: (withinMs + lateMs) / 1_000, unit: 's', budget: withinMs / 1_000 + 5, note };
    // Those that have not fired when the bench stops waiting are late, not lost.
    const broken =
      fired.length <= runs ? [] : [{ promise: 'each timer fires once', seen: `${fired.length} of ${runs}` }];
    return { row, broken };
  });
}

/** What the record of a long workflow has besides its snapshot, in memory and in SQLite. */
function storedRows(transitions: number): Promise<readonly Row[]> {
  return inFolder(async (folder) => {
    const sqlite = sqliteStore({ path: join(folder, 'pawl.db'), durability: 'process' });
    const rows = [
      await storedRow(transitions, 'memory', memoryStore()),
      await storedRow(transitions, 'SQLite', sqlite),
    ];
    await sqlite.close();
    return rows;
  });
}

async function storedRow(transitions: number, where: string, store: CheckpointStore): Promise<Row> {
  const workflow = collecting(transitions, 'waiting');
  const executor = createExecutor({ store, workflows: [workflow], defaults: { waitLingerMs: 1 } });
  const { runId } = await executor.run(workflow, {} as never);
  const record = await store.load(runId);
  const whole = JSON.stringify(record).length;
  const snapshot = JSON.stringify(record?.workflow?.snapshot).length;
  await executor.shutdown();
  const note = `${whole} characters, of which the snapshot has ${snapshot}; ${record?.iteration} transitions`;
  const what = `record of a workflow after ${transitions} transitions, without its snapshot, ${where}`;
  return { what, value: (whole - snapshot) / 1_000, unit: 'KB', budget: 1, note };
}
