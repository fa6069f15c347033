// tsc never deletes what an earlier build has left behind, and leftovers would be packed.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
process.chdir(root);

rmSync('dist', { recursive: true, force: true });
const { status } = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc'], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);

const command = 'dist/src/cli/bin.js';
if (existsSync(command)) chmodSync(command, 0o755);
