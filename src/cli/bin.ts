#!/usr/bin/env node
// Import nothing statically here that an old Node cannot load: this file must be able to report the version.
import { nodeComplaint } from './node-version.ts';

const complaint = nodeComplaint(process.versions.node);

if (complaint === undefined) {
  hideSqliteWarning();
  import('./main.ts').then(({ main }) => main(process.argv.slice(2)));
} else {
  console.error(complaint);
  process.exitCode = 2;
}

/** Node 22 warns that its SQLite is experimental. Users of the command cannot change that; all other warnings stay. */
function hideSqliteWarning(): void {
  const emitWarning = process.emitWarning as (...args: unknown[]) => void;
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] === 'ExperimentalWarning' && String(args[0]).startsWith('SQLite')) return;
    emitWarning.apply(process, args);
  };
}
