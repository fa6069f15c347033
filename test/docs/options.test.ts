import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { durationMs } from '../../src/values/clock.ts';
import { membersOf } from './declarations.ts';
import { limitOfOption } from './limits.ts';
import { optionsPage, type ShownOption, shownOptions } from './options.ts';
import { optionSections } from './options-table.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const sections = optionSections.map((section) => ({ ...section, options: shownOptions(root, section) }));
const all = sections.flatMap(({ title, options }) =>
  options.map((option) => ({ at: `${title}: ${option.name}`, ...option })),
);
const without = (lacks: (option: ShownOption) => boolean) => all.filter(lacks).map(({ at }) => at);

describe('the page of options', () => {
  test('says what the docstrings say today', () => {
    expect(readFileSync(`${root}/docs/options.md`, 'utf8'), 'run `npm run docs`').toBe(optionsPage(root));
  });

  test('has a sentence, a default and an example of one line for each option', () => {
    expect(all.length).toBeGreaterThan(200);
    expect(without(({ text }) => !/[.)]$/.test(text))).toEqual([]);
    expect(without(({ usual }) => !usual)).toEqual([]);
    expect(without(({ name, example }) => !example?.startsWith(name) || example.includes('\n'))).toEqual([]);
  });

  test('has each option once, under one subject', () => {
    for (const { title, subjects, options } of sections) {
      const named = subjects ? Object.values(subjects).flat() : options.map(({ name }) => name);
      expect([title, named.toSorted()]).toEqual([title, options.map(({ name }) => name).toSorted()]);
    }
  });

  test('has the options that the code knows, and no others', () => {
    const tables = knownKeys();
    const compared = sections.flatMap(({ of, keys: table = of, options, inner = [] }) => {
      const keys = tables.get(table);
      return keys
        ? [{ of, shown: options.map(({ name }) => name).toSorted(), keys: keys.filter((key) => !inner.includes(key)) }]
        : [];
    });
    expect(compared.length).toBeGreaterThan(20);
    for (const { of, shown, keys } of compared) expect([of, shown]).toEqual([of, keys.toSorted()]);
  });

  test('names the same figures as the page of limits', () => {
    const figures = all.flatMap(({ at, usual = '' }) => {
      const limit = limitOfOption(root, at.replace(/^createExecutor: (\w+): /, '$1.'));
      const value = durationMs(usual.replaceAll("'", '')) ?? Number(usual.replaceAll('_', ''));
      return limit === undefined || Number.isNaN(value) ? [] : [{ at, value, limit }];
    });
    expect(figures.length).toBeGreaterThan(25);
    expect(figures.filter(({ value, limit }) => value !== limit)).toEqual([]);
  });
});

/** The tables of known options by the type whose keys they have, read off the code. */
function knownKeys(): ReadonlyMap<string, readonly string[]> {
  const given = membersOf(root, 'src/run/fields.ts', 'GivenFields').map(({ name }) => name);
  const texts = globSync('src/**/*.ts', { cwd: root }).map((path) => readFileSync(`${root}/${path}`, 'utf8'));
  const tables = texts.flatMap((text) => [...text.matchAll(/: KnownKeys<(\w+)[^=]*= \{([^}]*)\}/g)]);
  return new Map(
    tables.map(([, name = '', fields = '']) => {
      const keys = [...fields.matchAll(/(\w+): true/g)].map(([, key = '']) => key);
      return [name, fields.includes('givenFields') ? [...keys, ...given] : keys];
    }),
  );
}
