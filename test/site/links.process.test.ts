import { existsSync, globSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { contract, decisionsOf, groups, pages, routeOf } from '../../site/pages.ts';
import { buildSite, inSite, siteFolder, whyNotNow } from '../toolchain/site.ts';

const root = `${siteFolder}/..`;
const www = `${siteFolder}/dist/www`;

test('the navigation of the site has every page of the documentation once, in the order of its map', () => {
  const order = [...readFileSync(`${root}/docs/README.md`, 'utf8').matchAll(/^\* \[[^\]]+\]\(([^()\s#]+)\.md\)/gm)];
  const listed = groups().flatMap(({ items }) => items.map(({ link }) => link));
  expect(order.length).toBeGreaterThan(30);
  expect(listed.slice(0, order.length)).toEqual(order.map(([, page]) => `/${page}`));
  const inside = [...contract().slice(1), ...decisionsOf()].map(({ link }) => link);
  const routes = pages().map(routeOf);
  // The front page and the map lead to the others. The decisions are one entry of the navigation.
  expect(['/', '/all-pages', ...listed.slice(0, -1), ...inside].toSorted()).toEqual(routes.toSorted());
});

describe.skipIf(whyNotNow())(inSite('the site'), () => {
  beforeAll(() => {
    const { ok, output } = buildSite('pipe');
    if (!ok) throw new Error(output);
  }, 600_000);

  test('is built of docs/*.md, and each of its links leads to a page and a heading', () => {
    const files = globSync('**/*.html', { cwd: www, exclude: ['404.html'] });
    const html = new Map(
      files.map((file) => [`/${file.replaceAll('\\', '/')}`, readFileSync(`${www}/${file}`, 'utf8')]),
    );
    const ids = new Map([...html].map(([path, text]) => [path, new Set(matches(text, / id="([^"]+)"/g))]));
    const isThere = ({ pathname, hash }: URL) => {
      const file = pathname.endsWith('/') ? `${pathname}index.html` : pathname;
      return hash === '' ? existsSync(www + file) : ids.get(file)?.has(decodeURIComponent(hash.slice(1)));
    };
    const dead = [...html].flatMap(([path, text]) =>
      matches(text, / (?:href|src)="([^"]+)"/g)
        .map((target) => new URL(target, `http://site${path}`))
        .filter((target) => target.host === 'site' && !isThere(target))
        .map(({ pathname, hash }) => `${path} -> ${pathname}${hash}`),
    );
    expect([files.length, dead]).toEqual([pages().length, []]);
  });
});

function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, found = '']) => found);
}
