// npm run recording: runs `pawl demo` and makes docs/pictures/demo.svg of what it prints.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { demoPicture, type PrintedLine } from './recording.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const env = { ...process.env, TMPDIR: '/tmp', npm_command: undefined };
const start = performance.now();
// Both streams in one, as a terminal has them.
const words = ['-c', 'exec "$0" "$@" 2>&1', process.execPath, `${root}/dist/src/cli/bin.js`, 'demo'];
const demo = spawn('sh', words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
const lines: PrintedLine[] = [];
createInterface({ input: demo.stdout }).on('line', (line) => {
  lines.push({ at: Math.round(performance.now() - start), words: line });
  console.log(line);
});
const [code] = await once(demo, 'close');
if (code !== 0) throw new Error(`pawl demo ended with ${code}`);
writeFileSync(`${root}/docs/pictures/demo.svg`, demoPicture(lines));
