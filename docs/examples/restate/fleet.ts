// Services behind a balancer, and a Restate before it: started, killed and started again.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Balancer, startBalancer } from './balancer.ts';
import { freePort, RestateServer } from './restate-server.ts';
import type { ServiceJob } from './service.ts';

const program = fileURLToPath(new URL('./service.ts', import.meta.url));

export interface FleetOptions {
  /** The path of restate-server. */
  readonly restateServer: string;
  readonly services: number;
  /** What the services get, without their ports. */
  readonly job: Omit<ServiceJob, 'port' | 'ingress'>;
  /** The program of a service; default `service.ts`. */
  readonly program?: string;
}

/** Services, their balancer, and a Restate that knows them. */
export class Fleet implements AsyncDisposable {
  readonly restate: RestateServer;
  readonly #options: FleetOptions;
  readonly #ports: number[] = [];
  readonly #services: (ChildProcess | undefined)[] = [];
  #balancer: Balancer | undefined;
  #isOver = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.restate = new RestateServer(options.restateServer, join(options.job.folder, 'restate'));
  }

  get balancer(): Balancer {
    if (!this.#balancer) throw new Error('the fleet has not started');
    return this.#balancer;
  }

  async start(): Promise<void> {
    for (let i = 0; i < this.#options.services; i++) this.#ports.push(await freePort());
    const [balancer] = await Promise.all([startBalancer(this.#ports), this.restate.start()]);
    this.#balancer = balancer;
    await Promise.all(this.#ports.map((_, i) => this.startService(i)));
    await this.restate.register(balancer.url);
  }

  /** Starts a service. Resolves when it listens. */
  async startService(i: number): Promise<void> {
    if (this.#isOver) return;
    const job = JSON.stringify({ ...this.#options.job, port: this.#ports[i], ingress: this.restate.ingress });
    const args = [...process.execArgv, this.#options.program ?? program, job];
    const env = { ...process.env, RESTATE_LOGGING: 'ERROR' };
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    this.#services[i] = child;
    await new Promise<void>((resolve) => {
      child.stdout?.once('data', () => resolve());
      child.once('close', () => resolve());
    });
  }

  /** Ends a service at once, as a loss of power does. */
  async killService(i: number): Promise<void> {
    await ended(this.#services[i], 'SIGKILL');
  }

  /** Lets a service stand still for some time, as a frozen machine does. */
  async holdService(i: number, ms: number): Promise<void> {
    this.#services[i]?.kill('SIGSTOP');
    await sleep(ms);
    this.#services[i]?.kill('SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#services.map((service) => ended(service, 'SIGKILL')));
    await this.restate.kill();
    await this.#balancer?.[Symbol.asyncDispose]();
  }
}

async function ended(child: ChildProcess | undefined, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once('close', resolve));
  child.kill(signal);
  await closed;
}
