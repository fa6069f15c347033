// Runs rows of the matrix in a process without global handlers: node -C pawl-source worker.ts <group> <from>
import type { Run, RunOutput } from 'pawl';
import { createActor, waitFor } from 'xstate';
import { hostOf } from '../fixtures/host.ts';
import { hostMachine } from '../fixtures/host-machine.ts';
import { fail } from './failures.ts';
import { type Row, rowsOf } from './rows.ts';
import type { Scene } from './scene.ts';

const PATIENCE_MS = 15_000;
/** The scripts have three stalls. */
const modelAttempts = 3;
const defaults = {
  modelAttempts,
  // A run whose model is away would wait for it: here it ends.
  modelOutageMs: 0,
  portMs: 30,
  finalizeMs: 60,
  toolTimeoutMs: 30,
  firstChunkMs: 10_000,
  chunkGapMs: 10_000,
  leaseMs: 2_000,
};

/** What a row came to. */
export interface Seen {
  readonly status?: string;
  readonly code?: string;
  /** How often the run's events said that it ended; absent = there were no events to read. */
  readonly ended?: number;
  readonly trouble?: string;
}

const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`);

function said(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'with what cannot be read';
  }
}

async function play({ port, failure, mode }: Row): Promise<Seen> {
  const act = () => fail(failure);
  const scene = port.scene(act, failure);
  const { options = {}, script, tools, agent = {} } = scene;
  const host = hostOf({
    ...(script ? { script } : {}),
    logger: { warn: () => {} },
    ...options,
    defaults: { ...defaults, ...options.defaults },
    agent: { ...agent, ...(tools ? { tools: tools as never } : {}) },
  });
  const { output, ended } = mode === 'start' ? await started(scene, host) : await hosted(scene, host);
  await bounded(scene.after?.(host.executor) ?? Promise.resolve(), 'what came after did not settle');
  const code = output.error?.code;
  JSON.stringify(output);
  return { status: output.status, ...(code ? { code } : {}), ...(ended === undefined ? {} : { ended: await ended }) };
}

type Host = ReturnType<typeof hostOf>;
type Ended = { output: RunOutput; ended?: Promise<number> | undefined };

const invocationOf = ({ invocation = {} }: Scene): object =>
  Object.defineProperties({ prompt: 'Go.', runId: 'r' }, Object.getOwnPropertyDescriptors(invocation));

async function started(scene: Scene, { executor, agent }: Host): Promise<Ended> {
  const run = await executor.start(agent, invocationOf(scene) as never, scene.runOptions);
  const ended = countEnds(run);
  scene.during?.(run, executor);
  return { output: await run.result, ended };
}

async function hosted(scene: Scene, { executor, agent }: Host): Promise<Ended> {
  const host = createActor(hostMachine(executor, agent, invocationOf(scene) as never)).start();
  const run = await liveRun(() => executor.get('r'));
  const ended = run && countEnds(run);
  if (run) scene.during?.(run, executor);
  const { children } = host.getSnapshot();
  const isDone = waitFor(host, ({ status }) => status === 'done', { timeout: Number.POSITIVE_INFINITY });
  const isLeft =
    children.run && waitFor(children.run, (state) => state.matches('left'), { timeout: Number.POSITIVE_INFINITY });
  await Promise.race([isDone, ...(isLeft ? [isLeft.catch(() => isDone)] : [])]);
  const { context, status } = host.getSnapshot();
  if (status === 'done') return { output: context.output as RunOutput, ended };
  // What passes ends no run of a host's machine: it would be tried again.
  const output = children.run?.getSnapshot().context.output as RunOutput;
  await executor.shutdown();
  return { output, ended };
}

/** A run that is refused early is never live. */
async function liveRun(get: () => ReturnType<Host['executor']['get']>): Promise<Run | undefined> {
  for (let turn = 0; turn < 3; turn++) {
    const run = get();
    if (run?.actor) return run as Run;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return undefined;
}

async function countEnds(run: Run): Promise<number> {
  let ends = 0;
  for await (const event of run.events()) if (event.type === 'run.ended') ends += 1;
  return ends;
}

async function bounded<T>(promise: Promise<T>, trouble: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${trouble} within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  return Promise.race([promise, tooLate]).finally(() => clearTimeout(timer));
}

/** Waits until nothing that keeps a process alive is left of a row; what stays would keep its host from ending. */
async function leftovers(): Promise<{ trouble?: string }> {
  const isLeft = () => process.getActiveResourcesInfo().includes('Timeout');
  const end = performance.now() + PATIENCE_MS;
  await new Promise((resolve) => setImmediate(resolve));
  // A wait that is over is none of them.
  while (isLeft() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 1));
  return isLeft() ? { trouble: 'a timer was left that keeps the process alive' } : {};
}

// Retries without a wait.
Math.random = () => 0;
const [group = '', from = '0'] = process.argv.slice(2);
for (const [index, row] of rowsOf(group).entries()) {
  if (index < Number(from)) continue;
  say({ begins: index });
  const seen = await bounded(play(row), 'no result').catch((error) => ({ trouble: `rejected: ${said(error)}` }));
  say({ index, seen: { ...seen, ...(await leftovers()) } });
}
say({ done: true });
