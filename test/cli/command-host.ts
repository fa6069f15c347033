// Runs commands of tests in one process, one after the other: `node command-host.ts <URL of the command's main module>`. The
// start of a process is most of what a short command costs. Each command has its own folder, environment, streams and agent
// modules, and it ends where it would end its process.
import { registerHooks } from 'node:module';
import { Readable, Writable } from 'node:stream';
import type { Ended } from './pawl.ts';

export interface Order {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

const [, , address = ''] = process.argv;
const { main } = (await import(address)) as { main(argv: readonly string[]): Promise<void> };
const own = new URL('../..', address).href;
const leave = process.exit.bind(process);
let commands = 0;

// Agent modules hold models that count their calls: another command loads them again.
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const isAgents =
      found.url.startsWith('file:') && !found.url.startsWith(own) && !found.url.includes('/node_modules/');
    return isAgents ? { ...found, url: `${found.url}?command=${commands}` } : found;
  },
});

const events = ['uncaughtException', 'SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'exit'] as const;

async function run({ args, cwd, env }: Order): Promise<Ended> {
  commands++;
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    const write = (chunk: Buffer, _: string, done: () => void) => {
      said[name] += chunk;
      done();
    };
    Object.defineProperty(process, name, { configurable: true, value: new Writable({ write }) });
  }
  Object.defineProperty(process, 'stdin', { configurable: true, value: Readable.from([]) });
  process.exitCode = undefined;
  const code = await new Promise<number>((resolve) => {
    process.exit = ((code = process.exitCode ?? 0) => resolve(Number(code))) as typeof process.exit;
    void main(args);
  });
  for (const event of events) process.removeAllListeners(event);
  return { code, ...said };
}

// Node would write it to stderr. What is experimental, the command hides.
process.on('warning', ({ name, message }) => {
  if (name !== 'ExperimentalWarning') process.stderr.write(`${name}: ${message}\n`);
});
process.on('message', (order: Order) => void run(order).then((ended) => process.send?.(ended)));
process.on('disconnect', () => leave());
