import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What some work cost this process. */
export interface Cost {
  /** User and system time of all threads, ms. */
  readonly cpuMs: number;
  readonly wallMs: number;
  /**
   * What the disk got (`write_bytes` of /proc/self/io, without pages of files that were deleted before they were written); NaN where
   * the system does not count it.
   */
  readonly bytes: number;
}

export async function measured(work: () => unknown): Promise<Cost> {
  const bytesBefore = bytesWritten();
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await work();
  const wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { cpuMs: (user + system) / 1_000, wallMs, bytes: bytesWritten() - bytesBefore };
}

function bytesWritten(): number {
  try {
    const io = readFileSync('/proc/self/io', 'utf8');
    const count = (name: string) => Number(new RegExp(`^${name}: (\\d+)`, 'm').exec(io)?.[1]);
    return count('write_bytes') - count('cancelled_write_bytes');
  } catch {
    return Number.NaN;
  }
}

/**
 * Returns the bytes of the heap that are in use, without garbage. The bench runs without `--expose-gc`. What a WeakRef names is kept
 * until the end of the turn that read it.
 */
export async function usedHeap(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let turn = 0; turn < 3; turn++) {
    await nextTurn();
    collect();
  }
  return process.memoryUsage().heapUsed;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const high = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? high : (high + (sorted[middle - 1] ?? high)) / 2;
}

export function perStep({ cpuMs, wallMs, bytes }: Cost, steps: number): Cost {
  return { cpuMs: cpuMs / steps, wallMs: wallMs / steps, bytes: bytes / steps };
}

/** Gives the work a folder of its own, and removes it afterwards. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
