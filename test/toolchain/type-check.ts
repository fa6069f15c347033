// The published types, as users of other compilers and settings than ours read them.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The oldest compiler that is supported, the last one of each major version, and the one of this repository. */
const compilers = ['5.4.5', '5.9.3', '6.0.3', '7.0.2'] as const;
export const typeSettings = [
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'esnext', moduleResolution: 'bundler' },
].flatMap((resolution) =>
  [false, true].map((exactOptionalPropertyTypes) => ({ ...resolution, exactOptionalPropertyTypes })),
);

export type TypeSetting = (typeof typeSettings)[number];

/** An alias for each compiler: a second package named `typescript` would take the place of `.bin/tsc`. */
export const compilerPackages = compilers.map((version) => `${aliasOf(version)}@npm:typescript@${version}`);

/** The entry points with all that they name, and what a user of them writes first. */
const program = (entryPoints: readonly string[]) => `
${entryPoints.map((name, i) => `export * as entry${i} from '${name}';`).join('\n')}
import { createExecutor, defineAgent, type RunResult } from 'pawl';
declare const schema: { readonly _type: { readonly city: string }; readonly jsonSchema: unknown };
export async function city(signal: AbortSignal): Promise<string> {
  await using executor = createExecutor({ models: {} });
  const agent = defineAgent({ id: 'a', instructions: 'Answer.', output: schema });
  const result: RunResult<{ readonly city: string }> = await executor.run(agent, { prompt: 'Go.' }, { signal });
  return result.status === 'ok' ? result.data.city : result.error.code;
}
`;

/**
 * Compiles a program that imports each entry point, with each compiler and setting: target ES2022 and its own libraries, no types
 * of Node, `skipLibCheck` off.
 * @param consumer a folder with the package and the compilers installed
 * @throws {Error} with the errors of the compiler
 */
export function checkTypes(consumer: string, entryPoints: readonly string[]): void {
  for (const version of compilers) {
    for (const setting of typeSettings) {
      const tsc = join(consumer, 'node_modules', aliasOf(version), 'bin', 'tsc');
      const errors = typeErrors(consumer, { tsc, entryPoints, setting });
      if (errors.length > 0) {
        throw new Error(`TypeScript ${version}, ${JSON.stringify(setting)}:\n${errors.join('\n')}`);
      }
    }
    console.log(`types: TypeScript ${version}, ${typeSettings.length} settings`);
  }
}

interface Compilation {
  readonly tsc: string;
  /** Of this compiler alone. */
  readonly options?: readonly string[];
  readonly entryPoints: readonly string[];
  readonly setting: TypeSetting;
}

/** What a compiler says against a program that imports each entry point, line by line. @param folder where the entry points are found */
export function typeErrors(folder: string, { tsc, options = [], entryPoints, setting }: Compilation): string[] {
  const compilerOptions = { ...setting, noEmit: true, strict: true, target: 'es2022', skipLibCheck: false, types: [] };
  writeFileSync(join(folder, 'entry-points.ts'), program(entryPoints));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['entry-points.ts'] }));
  const args = [tsc, '-p', folder, '--pretty', 'false', ...options];
  const { stdout, status, error } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  if (error) throw error;
  const errors = stdout.split('\n').filter((line) => /^\S.*error TS/.test(line));
  if (status !== 0 && errors.length === 0) throw new Error(`${tsc} ended with ${status}: ${stdout}`);
  return errors.filter((line) => !isOfXState(line, setting) && !isOfRestate(line));
}

/**
 * XState 5.33 does not compile under `exactOptionalPropertyTypes` (its setup.d.ts: `TConfig` is no `StateSchema`), with
 * or without this package.
 */
function isOfXState(line: string, { exactOptionalPropertyTypes }: TypeSetting): boolean {
  return exactOptionalPropertyTypes && line.replaceAll('\\', '/').includes('node_modules/xstate/');
}

/** The SDK of Restate names types of Node: its users have them. */
function isOfRestate(line: string): boolean {
  return line.replaceAll('\\', '/').includes('node_modules/@restatedev/');
}

function aliasOf(version: string): string {
  return `typescript-${version.replaceAll('.', '-')}`;
}
