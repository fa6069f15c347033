/// <reference lib="esnext.disposable" preserve="true" />
import { withDeadline } from '../../values/deadline.ts';
import { checkKeys, type KnownKeys } from '../../values/known-options.ts';
import { letGo } from '../../values/thenable.ts';
import type { Config } from './config.ts';

/** A signal, for example SIGTERM. The type needs no types of Node. */
export type SignalName = `SIG${string}`;

/** The options of `executor.shutdownOnSignals`. */
export interface SignalOptions {
  /**
   * Which signals of the process.
   * @default SIGTERM and SIGINT
   * @example signals: ['SIGTERM']
   */
  readonly signals?: readonly SignalName[];
  /**
   * Longest time from the signal to the exit; less than the 10 s that `docker stop` waits. If the
   * supervisor waits longer (Kubernetes: 30 s), set it to a second or two less than that wait.
   * @default 8_000
   */
  readonly drainMs?: number;
  /**
   * Called with the signal, at once: stop accepting work. `left` resolves when the executor has left its runs: close their
   * resources then. The exit waits for the returned promise, within `drainMs`. An error is logged.
   * @default none
   * @example onSignal: async (_, left) => left.then(() => server.close())
   */
  onSignal?(signal: SignalName, left: Promise<void>): unknown;
  /**
   * Ends the process. `false`: the application ends it by itself, unless a second signal comes.
   * @default `process.exit`
   * @example exit: false
   */
  readonly exit?: ((code: number) => void) | false;
}

const optionKeys: KnownKeys<SignalOptions> = {
  signals: true,
  drainMs: true,
  onSignal: true,
  exit: true,
};

/** The parts of an executor that a shutdown on signals uses. */
interface Leaving {
  readonly config: Pick<Config, 'clock' | 'warn'>;
  /** How many runs this process still works on. */
  live(): number;
  shutdown(drainMs: number): Promise<Departure>;
}

/** What a shutdown has left behind. `runs`: a run of this process is not over; `trouble`: not everything was left in time. */
export type Departure = 'nothing' | 'runs' | 'trouble';

const DRAIN_MS = 8_000;
/** A terminal signals its whole foreground group, and npm passes the signal on again: that is still one Ctrl-C. */
const SAME_PRESS_MS = 100;

/** Executors of this process that are leaving. The process ends when the last of them has left. */
const leaving = new Set<Promise<Departure>>();
/** A SIGTERM is an order that was carried out. EX_TEMPFAIL says to a supervisor, or to a Job, that work is left. */
const exitCodes: { readonly [What in Departure]: number } = { nothing: 0, runs: 75, trouble: 1 };

/** Shuts an executor down at signals of the process (SIGTERM, SIGINT); at most one listener is active. */
export class SignalSwitch {
  readonly #executor: Leaving;
  #listener: SignalListener | undefined;

  constructor(executor: Leaving) {
    this.#executor = executor;
  }

  /** Makes the executor shut down at signals of the process. @throws {TypeError} for invalid options; then nothing changes */
  on(options: SignalOptions): Disposable {
    const listener = new SignalListener(this.#executor, options);
    this.#listener?.stop();
    this.#listener = listener;
    listener.listen();
    return { [Symbol.dispose]: () => listener.stop() };
  }

  /** For an executor that was shut down. An executor that leaves because of a signal still handles the next one. */
  off(): void {
    if (!this.#listener?.isLeaving) this.#listener?.stop();
  }
}

/**
 * Leaves the runs of an executor on a signal, and ends the process. The exit code after a SIGTERM is 75 where a run was left, 0 where
 * none was, and 1 if the time was over before everything was left in good order; after any other signal 128 + n, as a shell expects
 * of an interrupted program. The second signal ends the process at once, with 128 + n.
 */
class SignalListener {
  readonly #executor: Leaving;
  readonly #options: SignalOptions;
  readonly #signals: readonly NodeJS.Signals[];
  readonly #drainMs: number;
  /** Resolves when the exit waits no longer for the remaining work. */
  readonly #giveUp = Promise.withResolvers<Departure>();
  #firstAt: number | undefined;
  #isForced = false;

  constructor(executor: Leaving, options: SignalOptions) {
    checkKeys(options, optionKeys, { of: 'shutdownOnSignals' });
    const { signals = ['SIGTERM', 'SIGINT'], drainMs = DRAIN_MS } = options;
    const known = [...new Set(signals)].map(checkedSignal);
    if (!(drainMs > 0)) throw new TypeError(`shutdownOnSignals: drainMs must be a number above 0, not ${drainMs}`);
    this.#executor = executor;
    this.#options = options;
    this.#signals = known;
    this.#drainMs = drainMs;
  }

  get isLeaving(): boolean {
    return this.#firstAt !== undefined;
  }

  listen(): void {
    for (const signal of this.#signals) process.on(signal, this.#onSignal);
  }

  /** Restores the former behaviour of the signals. A running shutdown continues. */
  stop(): void {
    for (const signal of this.#signals) process.off(signal, this.#onSignal);
  }

  readonly #onSignal = (signal: NodeJS.Signals): void => {
    const now = this.#executor.config.clock.monotonic();
    if (this.#firstAt === undefined) {
      this.#firstAt = now;
      void this.#leave(signal);
    } else if (now - this.#firstAt >= SAME_PRESS_MS) {
      this.#isForced = true;
      this.#giveUp.resolve('trouble');
      this.#exit(interrupted(signal));
    }
  };

  async #leave(signal: NodeJS.Signals): Promise<void> {
    const end = Promise.race([this.#complete(signal), this.#giveUp.promise]);
    leaving.add(end);
    await end;
    const departures = await Promise.all(leaving);
    const worst = (['trouble', 'runs'] as const).find((what) => departures.includes(what)) ?? 'nothing';
    leaving.delete(end);
    if (this.#options.exit === false || this.#isForced) return;
    this.#exit(signal === 'SIGTERM' ? exitCodes[worst] : interrupted(signal));
  }

  /** Never rejects. */
  async #complete(signal: NodeJS.Signals): Promise<Departure> {
    const { clock, warn } = this.#executor.config;
    const shutdown = this.#executor.shutdown(this.#drainMs);
    const left = shutdown.then(() => {});
    const hook = (async () => this.#options.onSignal?.(signal, left))().catch((error) => {
      warn('callback.threw', { what: 'onSignal', error });
    });
    const limit = { ms: this.#drainMs, clock, what: 'leaving on a signal' };
    const departure = await withDeadline(Promise.all([shutdown, hook]), limit).then(
      ([found]) => found,
      () => 'trouble' as const,
    );
    // The last line of a process: what its supervisor waits, or `drainMs`, is too short.
    if (departure === 'trouble') warn('drain.cut', { signal, drainMs: this.#drainMs, live: this.#executor.live() });
    return departure;
  }

  #exit(code: number): void {
    const { exit } = this.#options;
    try {
      if (exit) letGo(exit(code));
      else process.exit(code);
    } catch (error) {
      this.#executor.config.warn('callback.threw', { what: 'exit', error });
      process.exit(code);
    }
  }
}

function checkedSignal(signal: SignalName): NodeJS.Signals {
  const isKnown = Object.hasOwn(signalNumbers(), signal) && signal !== 'SIGKILL' && signal !== 'SIGSTOP';
  if (isKnown) return signal as NodeJS.Signals;
  throw new TypeError(`shutdownOnSignals: ${signal} is not a signal that a process can listen to`);
}

function interrupted(signal: NodeJS.Signals): number {
  return 128 + signalNumbers()[signal];
}

const signalNumbers = () => process.getBuiltinModule('node:os').constants.signals;
