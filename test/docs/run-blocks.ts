// Runs code blocks of the docs, one after the other: `node run-blocks.ts <mark> <folder of a block>...`.
// A block is at its end when Node would leave: its module is evaluated, and no timer, server or request is open. Then the next
// one begins, so that a hundred blocks load Pawl a few times. The mark on stderr tells of an end; it is behind what the block wrote there.
import { writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { torture } from '../crash/random.ts';

// What a block draws shows that the block is right. `npm run torture` draws as much as a reader's program does.
if (torture === 1) fc.configureGlobal({ numRuns: 15 });

const [, , mark = '', ...folders] = process.argv;
let isEvaluated = true;

async function begin(folder: string): Promise<void> {
  isEvaluated = false;
  process.chdir(folder);
  // A block that throws ends the process, as it would by itself.
  await import(pathToFileURL('block.ts').href);
  isEvaluated = true;
}

function next(): void {
  const folder = folders.shift();
  // An import alone may be done without the event loop, and Node would leave.
  if (folder !== undefined) setImmediate(() => void begin(folder));
}

process.on('beforeExit', () => {
  // Node's own code for a top-level `await` that never settles.
  if (!isEvaluated) process.exit(13);
  writeSync(process.stderr.fd, mark);
  next();
});
next();
