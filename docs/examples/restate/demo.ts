// 200 runs on two services and a real Restate. Services and Restate are killed every few seconds; a line shows how the runs fare. It
// ends by itself: exit code 0 if all runs ended once and no recorded call was repeated.
//
// node -C pawl-source docs/examples/restate/demo.ts [runs] [steps]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createExecutor, type Executor } from 'pawl';
import { restateRuns } from 'pawl/restate';
import { sqliteStore } from 'pawl/stores/sqlite';
import { orderDesk } from './agent.ts';
import { Fleet } from './fleet.ts';
import { readLedger, tallyOf } from './tally.ts';

const [runs = 200, steps = 25] = process.argv.slice(2).map(Number);
const engines = new URL('../../../test/engines/node_modules/', import.meta.url);
const packaged = `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`;
const restateServer = process.env.RESTATE_SERVER ?? fileURLToPath(new URL(packaged, engines));
const LIMIT_MS = 300_000;

const folder = mkdtempSync(join(tmpdir(), 'pawl-restate-'));
const ledger = join(folder, 'ledger.jsonl');
const desk = { steps, modelMs: 250 };
const fleet = new Fleet({ restateServer, services: 2, job: { ...desk, folder } });
await fleet.start();

// The process that takes requests: it runs nothing, and Restate gets the ids alone.
const { agent, model } = orderDesk({ ...desk, ledger });
const executor: Executor = createExecutor({
  agents: [agent],
  models: { fast: model },
  store: sqliteStore({ path: join(folder, 'runs.db') }),
  retention: { records: 3_600_000 },
  onDue: (runId, at) => front.onDue(runId, at),
});
const front = restateRuns(executor, { ingress: fleet.restate.ingress });

const ids = Array.from({ length: runs }, (_, i) => `run-${i + 1}`);
const ended = new Set<string>();
const kills = { services: 0, restate: 0 };

async function admit(): Promise<void> {
  for (const runId of ids) await executor.start(agent, { runId, prompt: runId }, { drive: 'later' });
}

const over = new AbortController();
const pause = (ms: number) => sleep(ms, undefined, { signal: over.signal }).catch(() => {});

/** Kills the services in turn, and Restate now and then, until all runs have ended. */
async function trouble(): Promise<void> {
  for (let round = 1; !over.signal.aborted; round++) {
    await pause(2_000);
    if (over.signal.aborted) return;
    if (round % 3 === 0) {
      await fleet.restate.kill();
      kills.restate += 1;
      await pause(300);
      await fleet.restate.start();
    } else {
      await fleet.killService(round % 2);
      kills.services += 1;
      await pause(300);
      await fleet.startService(round % 2);
    }
  }
}

/** Shows how the runs fare, until all have ended. */
async function watch(): Promise<void> {
  for (const limit = Date.now() + LIMIT_MS; ended.size < runs && Date.now() < limit; await sleep(500)) {
    for (const id of ids.filter((each) => !ended.has(each))) {
      if ((await executor.find(id))?.status === 'ended') ended.add(id);
    }
    show();
  }
}

function show(): void {
  const calls = readLedger(ledger).filter((line) => line.model).length;
  const line = `${ended.size} of ${runs} runs ended · ${calls} model calls · killed: ${kills.services} services, ${kills.restate} times Restate`;
  process.stdout.write(process.stdout.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
}

const troubling = trouble();
await admit();
await watch();
over.abort();
await troubling;

const found = await Promise.all(ids.map((id) => executor.find(id)));
const ok = found.filter((run) => run?.status === 'ended' && run.outcome.status === 'ok').length;
const transcripts = await Promise.all(ids.map(async (id) => JSON.stringify(await executor.messages(id))));
const { modelCalls, lost, repeats, unknown } = tallyOf(readLedger(ledger), transcripts);
console.log(`
${ok} of ${runs} runs ended with an answer
${repeats} recorded calls were repeated
${unknown} calls with effect \`once\` were cut by a kill: their outcome is unknown, and they ran once
${modelCalls} model calls, of which ${lost} were lost in ${kills.services} kills of services (Restate was killed ${kills.restate} times)`);
process.exitCode = ok === runs && repeats === 0 ? 0 : 1;
await executor.shutdown();
await fleet[Symbol.asyncDispose]();
rmSync(folder, { recursive: true, force: true });
