import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { codeBlocks } from './blocks.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = globSync(['create-pawl/templates/**/*.ts', 'docs/examples/**/*.ts'], { cwd: root });
const programs = [...codeBlocks(root), ...files.map((at) => ({ at, code: readFileSync(`${root}/${at}`, 'utf8') }))];

/** The options of each executor that a program makes. */
function executorsIn(code: string): string[] {
  const [, ...rests] = code.split('createExecutor(');
  return rests.map((rest) => {
    let depth = 1;
    const end = [...rest].findIndex((sign) => {
      if ('([{'.includes(sign)) depth += 1;
      if (')]}'.includes(sign)) depth -= 1;
      return depth === 0;
    });
    return rest.slice(0, end);
  });
}

/** A program that outlives its process, and begins or continues runs itself. */
const isDurable = (code: string) =>
  /\b(?:sqliteStore|postgresStore)\(/.test(code) && /executor\.(?:run|start|work)\(/.test(code);
const continues = (code: string) => /executor\.recover\(/.test(code);

test('a program with a store on disk, and each that calls recover(), names the agents or workflows that a restart continues', () => {
  const found = programs.filter(({ code }) => isDurable(code) || continues(code));
  const lacking = found.flatMap(({ at, code }) =>
    executorsIn(code)
      .filter((options) => /\bstore\b/.test(options) && !/\b(?:agents|workflows)\b/.test(options))
      .map((options) => `${at}: ${options}`),
  );
  expect(found.length).toBeGreaterThan(15);
  expect(lacking).toEqual([]);
});
