// npm run bench:peers [-- --json]: the loop of an agent on Pawl, Restate, DBOS and LangGraph. A peer that cannot be installed or
// run is named and skipped.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { programOf, whyNo } from '../engines/engines.ts';
import { PostgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';
import { childNodeAside } from './child-node.ts';
import { inFolder, median } from './measure.ts';
import { type Peer, type PeerCost, type PeerSample, peerTable } from './peer-table.ts';
import { machine } from './report.ts';

const folder = fileURLToPath(new URL('./peers/', import.meta.url));
const usage = `usage: npm run bench:peers -- [options]

Measures the same loop of an agent on Pawl, Restate, DBOS and LangGraph. A step is a
message of a model in this process, and the result of a tool. Each sample is a new process.

  --steps <count>   steps of a run, 100 unless given
  --rounds <count>  samples of each, 3 unless given
  --json            prints the figures as JSON
  --help            prints this`;
const INSTALL_LIMIT_MS = 600_000;
/** For one sample. */
const SAMPLE_LIMIT_MS = 60_000;

try {
  const { values } = parseArgs({
    options: {
      steps: { type: 'string', default: '100' },
      rounds: { type: 'string', default: '3' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const [steps, rounds] = [countOf(values.steps), countOf(values.rounds)];
  if (values.help) console.log(usage);
  else await measurePeers(steps, { rounds, isJson: values.json });
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}

function countOf(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new TypeError(`${JSON.stringify(text)} is not a count from 1 to 99999`);
  return Number(text);
}

async function measurePeers(
  steps: number,
  { rounds, isJson }: { readonly rounds: number; readonly isJson: boolean },
): Promise<void> {
  const missing = install();
  const server = whyNoPostgres === undefined && missing === undefined ? new PostgresServer([]) : undefined;
  let url = '';
  let noServer = whyNoPostgres;
  try {
    await server?.create().catch((error: Error) => {
      noServer = error.message;
    });
    url = noServer === undefined ? (server?.url ?? '') : '';
    const peers: readonly Peer[] = [
      { name: 'floor', file: 'ours.mjs', more: 'floor' },
      { name: 'Pawl', file: 'ours.mjs', more: 'pawl' },
      {
        ...{ name: 'Restate', file: 'restate.mjs', more: programOf('restate-server'), aside: 'its server' },
        whyNot: whyNo('restate-server'),
      },
      { name: 'DBOS', file: 'dbos.mjs', more: url, aside: 'PostgreSQL', whyNot: missing ?? noServer },
      { name: 'LangGraph', file: 'langgraph.mjs', more: '', whyNot: missing },
    ];
    const costs = await costsOf(peers, { steps, rounds });
    if (isJson) console.log(JSON.stringify({ machine: machine(), steps, rounds, peers: costs }, null, 2));
    else console.log(`\n${machine()}; ${steps} steps, ${rounds} processes of each, medians\n\n${peerTable(costs)}`);
  } finally {
    await server?.destroy();
  }
}

/** All peers by turns. */
async function costsOf(
  peers: readonly Peer[],
  { steps, rounds }: { readonly steps: number; readonly rounds: number },
): Promise<PeerCost[]> {
  const samples = new Map(peers.map((peer) => [peer, [] as PeerSample[]]));
  const skipped = new Map(peers.map((peer) => [peer, peer.whyNot]));
  for (let round = 0; round < rounds; round++) {
    for (const [peer, of] of samples) {
      if (skipped.get(peer) !== undefined) continue;
      console.error(`measuring ${peer.name} …`);
      try {
        of.push(await sampleOf(peer, steps));
      } catch (error) {
        skipped.set(peer, (error as Error).message.slice(0, 500));
      }
    }
  }
  return [...samples].map(([peer, of]) => {
    const { name, aside } = peer;
    const reason = skipped.get(peer);
    if (reason !== undefined) return { name, skipped: reason };
    const value = (key: 'cpuMs' | 'wallMs') => median(of.map((sample) => sample[key]));
    return { name, cpuMs: value('cpuMs'), wallMs: value('wallMs'), durable: of[0]?.durable ?? '', aside };
  });
}

function sampleOf({ file, more }: Peer, steps: number): Promise<PeerSample> {
  return inFolder(async (own) => {
    const text = await childNodeAside([`${folder}${file}`, own, String(steps), more], SAMPLE_LIMIT_MS);
    return JSON.parse(text.slice(text.lastIndexOf('{"cpuMs"'))) as PeerSample;
  });
}

/** @returns why the packages of the peers are not there */
function install(): string | undefined {
  const isThere = () => existsSync(`${folder}node_modules/.package-lock.json`);
  if (!isThere()) {
    console.error('Installing DBOS and LangGraph (106 MB) in test/bench/peers …');
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    const isWindows = process.platform === 'win32';
    spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2], timeout: INSTALL_LIMIT_MS, shell: isWindows });
  }
  return isThere() ? undefined : 'its packages cannot be installed (npm ci in test/bench/peers failed)';
}
