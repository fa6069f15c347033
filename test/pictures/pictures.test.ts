import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
// @ts-expect-error The package has no types.
import { JSDOM } from 'jsdom';
import { createExecutor, memoryStore } from 'pawl';
import { runMachine } from 'pawl/machines';
import { expect, test } from 'vitest';
import { outcomeUnknown, recoverOpenStep } from '../../src/run/open-step.ts';
import { policyOf } from '../../src/values/error-codes.ts';
import { pictures } from './pictures.ts';
import { demoPicture, linesIn } from './recording.ts';
import { colours, svgOf } from './svg.ts';
import { fates } from './tool-call.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = [...Object.keys(pictures), 'demo'];
const fileOf = (name: string) => readFileSync(`${root}/docs/pictures/${name}.svg`, 'utf8');
const pages = ['README.md', ...globSync('docs/*.md', { cwd: root })].map((page) =>
  readFileSync(`${root}/${page}`, 'utf8'),
);
const altsOf = (name: string) =>
  pages.flatMap((page) =>
    [...page.matchAll(/!\[([^\]]*)\]\(\S*pictures\/([\w-]+)\.svg\)/g)]
      .filter(([, , file]) => file === name)
      .map(([, alt]) => alt),
  );

test.for(Object.entries(pictures))(
  'the picture %s is what its script makes, and its page says it in words',
  ([name, make]) => {
    expect(fileOf(name), 'run `npm run docs`').toBe(svgOf(make()));
    expect(altsOf(name)).toEqual([make().description]);
  },
);

test.for(files)('the picture %s is a small file with a text, and loads and runs nothing', (name) => {
  const svg = fileOf(name);
  expect(svg.length).toBeLessThan(20_000);
  const { documentElement } = new JSDOM(svg, { contentType: 'image/svg+xml' }).window.document;
  expect(documentElement.getAttribute('role')).toBe('img');
  for (const part of ['title', 'desc']) expect(documentElement.querySelector(part)?.textContent).not.toBe('');
  const names = new Set([...documentElement.querySelectorAll('*')].map(({ tagName }) => tagName));
  expect([...names].filter((tag) => !drawing.has(tag))).toEqual([]);
  expect(svg.replaceAll('xmlns="http://www.w3.org/2000/svg"', '')).not.toMatch(
    /https?:|@import|url\((?!#)|href|\son\w+=/,
  );
  expect(svg).toContain('prefers-color-scheme:dark');
});

const drawing = new Set(['title', 'desc', 'style', 'defs', 'marker', 'g', 'rect', 'path', 'text', 'tspan']);

test.for([0, 1] as const)(
  'the colours of pictures can be read on their ground, by day (0) and by night (1): %i',
  (at) => {
    const { ground, edge: _, fill, ...inks } = colours;
    for (const paper of [ground, fill])
      for (const [name, ink] of Object.entries(inks))
        expect([name, contrast(ink[at], paper[at]) >= 4.5]).toEqual([name, true]);
  },
);

function contrast(one: string, other: string): number {
  const light = (colour: string) => {
    const parts = [1, 3, 5].map((from) => Number.parseInt(colour.slice(from, from + 2), 16) / 255);
    const [r = 0, g = 0, b = 0] = parts.map((part) =>
      part <= 0.039_28 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low = 0, high = 0] = [light(one), light(other)].toSorted((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test('the picture of the chart has each state of a run’s machine, and marks those at which a restart continues', () => {
  interface StateNode {
    readonly key: string;
    readonly meta?: { readonly resumesAt?: string };
    readonly states: Readonly<Record<string, StateNode>>;
  }
  const names = (state: StateNode): string[] => [
    `${state.key}${state.meta?.resumesAt ? ' ↺' : ''}`,
    ...Object.values(state.states).flatMap(names),
  ];
  const { root: machine } = runMachine({ id: 'agent' });
  // Only a run inside a host's machine has the outer `left`; the loop has one of its own.
  const states = Object.values((machine as unknown as StateNode).states)
    .filter(({ key }) => key !== 'left')
    .flatMap(names);
  const drawn = [...fileOf('run-chart').matchAll(/class="[^"]*name"[^>]*>([^<]+)</g)].map(([, name]) => name);
  expect(drawn.toSorted()).toEqual(states.toSorted());
});

test.for(Object.entries(fates))('the picture of a call says of the effect %s what a restart does', ([effect, fate]) => {
  const call = { callId: 'c', name: 't', input: {}, effect, attempt: 1, result: { type: 'text', value: 'done' } };
  const after = (state: string) => {
    const calls = [{ ...call, state, ...(state === 'done' ? {} : { result: undefined }) }];
    const step = { message: { role: 'assistant', content: [] }, calls } as unknown as Parameters<
      typeof recoverOpenStep
    >[0];
    return recoverOpenStep(step).calls[0];
  };
  const words = (state: string) => {
    const found = after(state);
    if (found?.state === 'planned') return state === 'planned' ? 'runs' : 'runs again';
    return JSON.stringify(found?.result).includes(outcomeUnknown) ? 'not repeated' : 'result is kept';
  };
  expect([words('planned'), words('started'), words('done')]).toEqual([
    fate.before,
    fate.during.replace(', same key', ''),
    fate.after,
  ]);
});

test('the names in the pictures are those of the code', async () => {
  const executor = createExecutor({ store: memoryStore() });
  expect([typeof executor.start, typeof executor.work]).toEqual(['function', 'function']);
  await executor.shutdown();
  expect(policyOf('LEASE_LOST')).toBeDefined();
});

test('the recording is made of its lines and their times, and a page has it with its text', () => {
  const svg = fileOf('demo');
  const lines = linesIn(svg);
  expect(lines.length).toBeGreaterThan(10);
  expect(demoPicture(lines)).toBe(svg);
  expect(lines.map(({ at }) => at)).toEqual(lines.map(({ at }) => at).toSorted((a, b) => a - b));
  expect(altsOf('demo')).toEqual([expect.stringMatching(/\w/)]);
});
