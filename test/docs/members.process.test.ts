import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { routes } from '../../src/http/routes.ts';
import { cliPage } from './cli-page.ts';
import { httpApiPage, servedRoutes } from './http-api.ts';
import { membersPage, sentenceOf, shownMembers, shownWords } from './members.ts';
import { memberSections, resultSections, wordSections } from './members-table.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = (name: string) => readFileSync(`${root}/docs/${name}.md`, 'utf8');

describe('the page of members', () => {
  test('says what the docstrings say today', () =>
    expect(page('members'), 'run `npm run docs`').toBe(membersPage(root)));

  test('has a sentence for each member, each field of a result and each word', () => {
    const members = [...memberSections, ...resultSections].flatMap((section) =>
      shownMembers(root, section).map((member) => ({ at: `${section.of}.${member.name}`, says: sentenceOf(member) })),
    );
    const words = wordSections.flatMap((section) =>
      shownWords(root, section).map(([word, says]) => ({ at: `${section.of}: ${word}`, says })),
    );
    expect(members.length).toBeGreaterThan(80);
    expect(words.length).toBeGreaterThan(15);
    expect([...members, ...words].filter(({ says }) => !/[.!?]$/.test(says))).toEqual([]);
  });

  test('has each member under one subject', () => {
    for (const section of memberSections) {
      if (!section.subjects) continue;
      const names = [...new Set(shownMembers(root, section).map(({ name }) => name))];
      expect(Object.values(section.subjects).flat().toSorted()).toEqual(names.toSorted());
    }
  });
});

describe('the page of the command line', () => {
  test('has the help of each command as it is printed today', () =>
    expect(page('cli'), 'run `npm run docs`').toBe(cliPage()));
});

describe('the page of the HTTP API', () => {
  test('is that of the OpenAPI document which the handler serves today', async () => {
    expect(page('http-api'), 'run `npm run docs`').toBe(await httpApiPage());
    expect(await servedRoutes()).toHaveLength(routes.length - 1);
  });
});
