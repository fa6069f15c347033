import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** State T of /proc. */
export function isStopped({ pid }: ChildProcess): boolean {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.startsWith('T') ?? false;
}

export function closed(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.once('close', () => resolve()));
}

/** Resolves when a process has said a word. */
export function heard(child: ChildProcess, word: string): Promise<void> {
  return new Promise((resolve) => {
    child.stdout?.on('data', (text) => String(text).includes(word) && resolve());
  });
}

/** All that a process still says, up to its end. */
export async function lastOutput(child: ChildProcess): Promise<string> {
  let text = '';
  child.stdout?.on('data', (chunk) => {
    text += chunk;
  });
  await closed(child);
  return text;
}
