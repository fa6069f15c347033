import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { WriteSnapshot } from '../../src/edits/proposed-write.ts';
import type { LockOwner } from '../../src/edits/root-lock.ts';
import { diskFiles, type FileSystem } from '../../src/files/file-system.ts';
import { newOwner } from '../../src/store/owner.ts';
import { type Call, type Fault, faultyFiles } from '../files/faulty.ts';

/** Each kind of change: an old text, a deletion, a new file in new folders, bytes that are kept as they are. */
export const someFiles = { 'a.txt': 'a', 'src/b.ts': 'b', 'src/c.ts': 'c', 'z.bin': new Uint8Array([0, 255]) };
export const someWrites: readonly WriteSnapshot[] = [
  { path: 'a.txt', content: 'new a' },
  { path: 'new/deep/n.txt', content: 'n' },
  { path: 'src/b.ts', content: '', delete: true },
  { path: 'src/c.ts', content: 'new c' },
];

export const worker = (files: FileSystem = diskFiles): LockOwner => ({ files, newOwner, waitMs: 5_000 });

/** One whose calls fail as planned. `dies`: it counts as a killed process afterwards. */
export function faultyWorker(fault: (call: Call, n: number) => Fault | undefined, dies = false) {
  const faults = faultyFiles();
  faults.plan((call) => fault(call, faults.calls.length));
  return { worker: { ...worker(faults.files), ...(dies ? { newOwner: mortalOwner } : {}) }, faults };
}

/** This process, had it been started at another time. */
function mortalOwner(): string {
  const parts = newOwner().split('|');
  return parts.with(4, '1').join('|');
}

/** Where it can be seen that a process is dead. */
export const hasProc = existsSync('/proc/self/stat');

export const undoFolder = (root: string, ordinal: number) => join(root, '.pawl/undo', String(ordinal));
