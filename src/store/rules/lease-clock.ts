import { readFileSync } from 'node:fs';
import { type Clock, systemClock } from '../../values/clock.ts';

/** The clock of leases. All processes that share a database must share it. */
export interface LeaseClock {
  /** Identifies the clock. A lease of another one (an earlier boot) has expired. */
  readonly boot: string;
  /** Milliseconds. */
  now(): number;
}

/**
 * Returns the clock by which stores compute leases. On Linux it is the time since boot, which all processes of a machine
 * share and no change of the wall clock affects; with the boot's id, because it restarts with each boot. Without such an
 * id, the wall clock.
 * @param clock a clock of the host's own, for tests
 */
export function leaseClock(clock?: Clock): LeaseClock {
  // The system clock's monotonic time counts from the start of one process: no other process could read it.
  if (clock !== undefined && clock !== systemClock) return { boot: 'clock', now: () => clock.monotonic() };
  const boot = bootId();
  return boot === undefined ? { boot: 'wall', now: () => Date.now() } : { boot, now: sinceBoot };
}

function sinceBoot(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

function bootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return undefined;
  }
}
