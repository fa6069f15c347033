import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const engines = ['restate-server', 'bun', 'deno', 'workerd', 'next'] as const;

/** A server or runtime that stands in a package of its own, `test/engines/package.json`. */
export type Engine = (typeof engines)[number];

/** What an engine's package calls a machine, and where the program lies in it. */
const programs: Readonly<Record<Engine, (machine: string) => string>> = {
  'restate-server': (machine) => `@restatedev/restate-server-${machine}/bin/restate-server`,
  bun: (machine) => `@oven/bun-${machine.replace('arm64', 'aarch64')}/bin/bun`,
  deno: (machine) => `@deno/${machine.replace(/^linux-.*/, '$&-glibc')}/deno`,
  next: () => 'next/dist/bin/next',
  workerd: (machine) => `@cloudflare/workerd-${machine.replace('x64', '64')}/bin/workerd`,
};

const machine = `${process.platform}-${process.arch}`;

/** The path of an engine's program. Its file exists if `whyNo(engine)` is undefined. */
export function programOf(engine: Engine): string {
  return fileURLToPath(new URL(`node_modules/${programs[engine](machine)}`, import.meta.url));
}

/** Why there is no such engine to test with; undefined if there is one. */
export function whyNo(engine: Engine): string | undefined {
  return existsSync(programOf(engine))
    ? undefined
    : `no ${engine} for ${machine}: npm run engines installs what there is`;
}

/** The title of tests that need an engine: where there is none, it says why they are skipped. */
export function inEngine(engine: Engine, title: string): string {
  const reason = whyNo(engine);
  return reason === undefined ? title : `${title} (SKIPPED: ${reason})`;
}

/** What each engine finds in its environment: none of them reports to its makers. */
export const engineEnvironment: NodeJS.ProcessEnv = {
  ...process.env,
  DO_NOT_TRACK: '1',
  RESTATE_DISABLE_TELEMETRY: 'true',
  DENO_NO_UPDATE_CHECK: '1',
  DENO_NO_PROMPT: '1',
  NEXT_TELEMETRY_DISABLED: '1',
};
