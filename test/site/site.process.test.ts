import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { extname } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { contract, decisions, groups, pages, routeOf } from '../../site/pages.ts';
import { inChromium, startChromium, whyNoChromium } from '../fixtures/chromium.ts';
import { buildSite, inSite, siteFolder, whyNotNow } from '../toolchain/site.ts';

const root = `${siteFolder}/..`;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** The front page, a page with a table and pictures, the map, long tables, and a page of the contract. */
const looked = ['/', '/effects.html', '/all-pages.html', '/errors.html', '/contract/waiting.html'];
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};
const www = `${siteFolder}/dist/www`;

test('the navigation of the site has every page of the documentation once, in the order of its map', () => {
  const map = readFileSync(`${root}/docs/README.md`, 'utf8').matchAll(/^\* \[[^\]]+\]\(([^()\s#]+)\.md\)/gm);
  const order = [...map].map(([, page]) => `/${page}`);
  const listed = groups().flatMap(({ items }) => items.map(({ link }) => link));
  expect(order.length).toBeGreaterThan(30);
  expect(listed.filter((link) => order.includes(link))).toEqual(order);
  const inside = [...contract().slice(1), ...decisions().slice(1)].map(({ link }) => link);
  const routes = pages().map(routeOf);
  // The front page and the map lead to the others. Of the decisions the navigation has the newest.
  expect(['/', '/all-pages', ...listed, ...inside].toSorted()).toEqual(routes.toSorted());
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

  describe.skipIf(whyNoChromium)(inChromium('in a browser'), () => {
    let server: Server;
    let browser: Browser;
    const foreign: string[] = [];
    beforeAll(async () => {
      server = createServer((request, response) => {
        const path = new URL(request.url ?? '/', 'http://site').pathname;
        const file = `${www}${path.endsWith('/') ? `${path}index.html` : path}`;
        if (!existsSync(file)) response.writeHead(404).end();
        else response.setHeader('content-type', types[extname(file)] ?? 'text/plain').end(readFileSync(file));
      }).listen(0, '127.0.0.1');
      browser = await startChromium();
    });
    afterEach(() => expect(foreign.splice(0), 'requests to another origin').toEqual([]));
    afterAll(async () => {
      await browser.close();
      server.closeAllConnections();
      server.close();
    });

    async function open(path: string, width: number, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      page.on('request', (request) => {
        if (!/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(`${origin}/`))
          foreign.push(request.url());
      });
      await page.goto(origin + path);
      return page;
    }

    test('its search finds “approval” and opens the page that has it', async () => {
      const page = await open('/', 1_440);
      await page.getByRole('button', { name: 'Search' }).click();
      await page.keyboard.type('approval');
      const results = page.locator('.rp-search-panel__results');
      await results
        .getByText(/approval/i)
        .first()
        .waitFor();
      await page.keyboard.press('Enter');
      // Not the reference, which has each name.
      await expect.poll(() => page.locator('h1').first().innerText()).toMatch(/approval/i);
      await page.close();
    });

    test.for(looked)('%s has no sideways scroll at the width of a phone', async (path) => {
      const page = await open(path, 375);
      await page.locator('h1').first().waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(375);
      await page.close();
    });

    test('its menu leads a phone from page to page', async () => {
      const page = await open('/effects.html', 375);
      await page.getByRole('button', { name: 'Menu' }).click();
      const waiting = groups()
        .flatMap(({ items }) => items)
        .find(({ link }) => link === '/waiting');
      await page.getByRole('link', { name: waiting?.text ?? '', exact: true }).click();
      await page.waitForURL(/\/waiting/);
      await page.close();
    });

    test('it is dark where the reader’s system is, and its switch makes it light', async () => {
      const page = await open('/', 1_440, 'dark');
      const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
      await expect.poll(ground).toBe('rgb(18, 18, 18)');
      await page.locator('.rp-switch-appearance').first().click();
      await expect.poll(ground).toBe('rgb(255, 255, 255)');
      await page.close();
    });

    const looks = looked.flatMap((path) => ([1_440, 375] as const).map((width) => [path, width] as const));
    test.for(looks)('axe finds nothing serious on %s at %i px, light and dark', async ([path, width]) => {
      for (const scheme of ['light', 'dark'] as const) {
        const page = await open(path, width, scheme);
        await page.locator('h1').first().waitFor();
        // A colour that is on its way to another one is none that is read.
        await page.addStyleTag({
          content: '*, *::before, *::after { transition: none !important; animation: none !important }',
        });
        await page.evaluate(axe);
        const found = await page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
          violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
            .map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200)))`);
        expect([scheme, found]).toEqual([scheme, []]);
        await page.close();
      }
    });
  });
});

function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, found = '']) => found);
}
