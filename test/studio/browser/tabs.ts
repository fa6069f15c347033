import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** How a page is looked at. */
export interface Look {
  readonly width?: 1_440 | 390;
  readonly isDark?: boolean;
  /** A server that is away, or refuses, is an error on the console of the browser itself. */
  readonly mayLose?: boolean;
}

/** What runs, loads, or leaves the page by itself: no view has such an element, nor an attribute that is a script or an address. */
const watching = `
  addEventListener('securitypolicyviolation', (event) => complain('CSP: ' + event.violatedDirective + ' ' + event.blockedURI));
  const active = 'script, iframe, img, object, embed, style, link, meta, base, video, audio, source, math, form';
  const hidden = /[\\u202a-\\u202e\\u2066-\\u2069\\u0000]/;
  const look = (node) => {
    if (hidden.test(node.data ?? '')) complain('HIDDEN: ' + node.data);
    if (!(node instanceof Element) || !node.closest('#app')) return;
    if (node.matches(active)) complain('ELEMENT: ' + node.outerHTML);
    for (const { name, value } of node.attributes) {
      const isAddress = /^(xlink:)?(href|src|srcdoc|action|formaction|data)$/.test(name);
      if (name.startsWith('on') || (isAddress && !value.startsWith('#')) || hidden.test(value))
        complain('ATTRIBUTE: ' + name + '=' + value);
    }
    for (const child of node.childNodes) look(child);
  };
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) for (const node of type === 'childList' ? addedNodes : [target]) look(node);
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
`;

/** The tabs of a test file, in one browser. What the browser complains of, and each report of the CSP, is kept. */
export class Tabs {
  readonly complaints: string[] = [];
  readonly #browser: Browser;
  #context: Promise<BrowserContext> | undefined;

  constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Opens an address in a tab of its own. */
  async open(address: string, look: Look = {}): Promise<Page> {
    this.#context ??= this.#newContext();
    const page = await (await this.#context).newPage();
    page.on('console', (message) => {
      if (message.type() === 'error' && !look.mayLose)
        this.complaints.push(`${message.text()} ${message.location().url}`);
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    await lookAt(page, look);
    await page.goto(address);
    return page;
  }

  /** Fails if the browser complained since the last time. @param except an address that may be missing: it was asked for before it went */
  check(except?: string): void {
    const found = this.complaints.splice(0);
    expect(found.filter((text) => except === undefined || !text.includes(except))).toEqual([]);
  }

  /** Closes all tabs. */
  async close(): Promise<void> {
    for (const page of (await this.#context)?.pages() ?? []) await page.close();
  }

  async #newContext(): Promise<BrowserContext> {
    const context = await this.#browser.newContext();
    // The page itself looks, and calls: what a test evaluates in a page passes the CSP by.
    await context.exposeFunction('complain', (text: string) => this.complaints.push(text));
    await context.addInitScript(watching);
    return context;
  }
}

const heights = { 1440: 900, 390: 844 } as const;

/** Sets the size and the colours of a tab. */
export async function lookAt(page: Page, { width = 1_440, isDark = true }: Look): Promise<void> {
  await page.setViewportSize({ width, height: heights[width] });
  const colorScheme = isDark ? 'dark' : 'light';
  await page.emulateMedia({ colorScheme });
  // The event of the change reaches the page a little later.
  if (page.url() !== 'about:blank') await page.waitForSelector(`html[data-theme=${colorScheme}]`);
}

/** Goes to a view of the page that is open. */
export async function go(page: Page, view: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
}

/** Waits until a text is in sight. */
export async function shown(page: Page, text: string): Promise<void> {
  await page.getByText(text).first().waitFor();
}

/** Presses a button. */
export async function press(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name }).first().click();
}

/** The rules that look at colours. Two looks of the same size differ in nothing else. */
const colours = ['color-contrast', 'link-in-text-block'];

/** The faults of a page that axe finds. @param only whether only its colours have changed */
export async function faultsOf(page: Page, only?: 'colours'): Promise<readonly string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe);
  const options = { resultTypes: ['violations'], iframes: false, ...(only ? { runOnly: colours } : {}) };
  return page.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200)))`);
}

/** Whether a page is wider than its window, as a fault. */
export async function tooWide(page: Page): Promise<readonly string[]> {
  const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
  return isWide ? ['it is wider than its window'] : [];
}
