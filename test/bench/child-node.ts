import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs Node in the project's folder, and returns what it printed. Throws if it fails. */
export function childNode(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`node ${args.join(' ')} failed: ${stderr}`);
  return stdout.trim();
}

/** Runs Node without blocking this process, whose servers it may ask. Throws if it fails or takes too long. */
export async function childNodeAside(args: readonly string[], timeout: number): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout, killSignal: 'SIGKILL' });
  return stdout;
}
