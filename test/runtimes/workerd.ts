import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { engineEnvironment, programOf } from '../engines/engines.ts';
import { packageConditions } from '../toolchain/programs.ts';
import { listening, type Server } from './runtimes.ts';

export interface WorkerOptions {
  /** Whether the worker has Node's modules; default true. */
  readonly nodejsCompat?: boolean;
  /** Whether it has a Durable Object of the class `Host`. */
  readonly durable?: boolean;
  /** Whether it may call its own cron, as the platform does. */
  readonly cron?: boolean;
}

/** Starts workerd with a worker, bundled into one file as tools for workers do. */
export async function startWorkerd(entry: string, options: WorkerOptions = {}): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-workerd-'));
  await bundle(fileURLToPath(new URL(entry, import.meta.url)), join(folder, 'worker.js'));
  writeFileSync(join(folder, 'config.capnp'), configOf(options));
  const flags = ['--control-fd=1', ...(options.cron ? ['--experimental'] : [])];
  const child = spawn(programOf('workerd'), ['serve', join(folder, 'config.capnp'), ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: engineEnvironment,
  });
  const server = await listening(child);
  const stop = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...server, stop };
}

/** The platform `browser` is that of wrangler: `process.env.NODE_ENV` becomes a text. */
async function bundle(input: string, file: string): Promise<void> {
  const conditionNames = [...packageConditions, 'workerd', 'worker', 'import'];
  const made = await rolldown({ input, external: /^node:/, platform: 'browser', resolve: { conditionNames } });
  await made.write({ file, codeSplitting: false });
  await made.close();
}

function configOf({ nodejsCompat = true, durable = false, cron = false }: WorkerOptions): string {
  const objects = `
    durableObjectNamespaces = [ (className = "Host", uniqueKey = "host") ],
    durableObjectStorage = (inMemory = void),
    bindings = [ (name = "HOST", durableObjectNamespace = "Host") ],`;
  const self = 'bindings = [ (name = "SELF", service = "main") ],';
  const compatibility = [
    ...(nodejsCompat ? ['nodejs_compat'] : []),
    ...(cron ? ['service_binding_extra_handlers'] : []),
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
  const config :Workerd.Config = (
    services = [ (name = "main", worker = .worker) ],
    sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ],
  );
  const worker :Workerd.Worker = (
    modules = [ (name = "worker", esModule = embed "worker.js") ],${durable ? objects : ''}${cron ? self : ''}
    compatibilityFlags = [${compatibility.map((flag) => JSON.stringify(flag)).join(', ')}],
    compatibilityDate = "2026-07-01",
  );`;
}
