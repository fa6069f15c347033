import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { earlierNames } from '../../src/values/known-options.ts';

/** Options that are TypeErrors today, as pages wrote them. */
const retired = [
  // `modelTier` is a field of a record as well.
  ...Object.keys(earlierNames).filter((name) => name !== 'modelTier'),
  ...[
    'keepOutcomesMs',
    'keepSignalsMs',
    'keepMs',
    'lingerMs',
    'history.keepMs',
    'checkpoints:',
    "onUnknownOutcome: 'tell-model'",
  ],
];
/** What tells of the old names, and what is made of the types. */
const telling = [/docs.decisions/, /docs.reference\.md$/];

test('no page names an option that is refused today', () => {
  const pages = ['README.md', ...globSync(['docs/**/*.md', 'create-pawl/**/*.{md,ts,js}'])].filter(
    (page) => !telling.some((each) => each.test(page)),
  );
  expect(pages.length).toBeGreaterThan(80);
  const found = pages.flatMap((page) => {
    const text = readFileSync(page, 'utf8');
    return retired
      .filter((name) => new RegExp(`(?<![\\w.])${name.replace('.', '\\.')}`).test(text))
      .map((name) => `${page}: ${name}`);
  });
  expect(found).toEqual([]);
});
