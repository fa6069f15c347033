import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type Engine, engineEnvironment, inEngine, programOf, whyNo } from './engines.ts';

const run = promisify(execFile);
const manifest = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const pinned = Object.entries<string>({ ...manifest.optionalDependencies, ...manifest.dependencies });

/** The version that test/engines/package.json asks for, of each engine. workerd says only its date. */
const versions: readonly (readonly [Engine, string])[] = [
  ['restate-server', pinnedAs('@restatedev/')],
  ['bun', pinnedAs('@oven/')],
  ['deno', pinnedAs('@deno/')],
  ['next', pinnedAs('next')],
  ['workerd', pinnedAs('@cloudflare/').replace(/^1\.(\d{4})(\d\d)(\d\d)\.\d+$/, '$1-$2-$3')],
];

function pinnedAs(scope: string): string {
  const found = new Set(pinned.flatMap(([name, version]) => (name.startsWith(scope) ? [version] : [])));
  expect(found.size, `versions of ${scope}`).toBe(1);
  return [...found].join();
}

describe.for(versions)('the engine %s', ([engine, version]) => {
  test.skipIf(whyNo(engine))(inEngine(engine, 'runs here, in the version of its lockfile (engine 46)'), async () => {
    const { stdout } = await run(programOf(engine), ['--version'], { env: engineEnvironment });
    expect(stdout).toContain(version);
  });
});
