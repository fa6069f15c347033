import { runMachine } from 'pawl/machines';
import { describe, expect, test } from 'vitest';
import { lifecyclePage } from '../docs/lifecycle.ts';

interface Node {
  readonly key: string;
  readonly description?: string;
  readonly meta?: { readonly resumesAt?: string };
  readonly states: Readonly<Record<string, Node>>;
}
const chartOf = (...names: string[]) =>
  runMachine({ id: 'worker', phases: names.map((name) => ({ name })) }).root as unknown as Node;
const work = (root: Node) => Object.keys(root.states).filter((key) => key === 'running' || /phase/.test(key));
const shapeOf = (node: Node): unknown =>
  Object.fromEntries(
    Object.values(node.states).map((each) => [each.key, [each.description, each.meta, shapeOf(each)]]),
  );
const all = (node: Node): Node[] => Object.values(node.states).flatMap((each) => [each, ...all(each)]);

describe('the chart of a run', () => {
  test('has one state a phase, described by the phase’s name, and a place between them', () => {
    const root = chartOf('survey', 'report');
    expect(work(root)).toEqual(['between-phases', 'phase(0)', 'phase(1)']);
    expect(root.states['phase(0)']?.description).toBe('Phase 1 of 2: survey.');
    expect(root.states['phase(1)']?.description).toBe('Phase 2 of 2: report.');
  });

  test('has the single loop without phases', () => {
    expect(work(runMachine({ id: 'worker' }).root as unknown as Node)).toEqual(['running']);
    expect(work(chartOf())).toEqual(['running']);
  });

  test('has in each phase the very loop that a run without phases is', () => {
    const { running } = (runMachine({ id: 'worker' }).root as unknown as Node).states;
    const root = chartOf('a', 'b');
    for (const key of ['phase(0)', 'phase(1)'])
      expect(shapeOf(root.states[key] as Node)).toEqual(shapeOf(running as Node));
  });

  test('says of each of its states what it is, and where a restarted process continues', () => {
    const root = chartOf('a', 'b');
    for (const node of all(root)) expect(node.description, node.key).toMatch(/\.$/);
    expect(root.states['between-phases']?.meta).toEqual({ resumesAt: 'here' });
  });

  test.for(['a "quoted" name', 'a.b', 'phase(0)', '__proto__', 'x'.repeat(1_000), '\n', '#id'])(
    'takes any name: %j',
    (name) => {
      const root = chartOf(name, name);
      expect(work(root)).toEqual(['between-phases', 'phase(0)', 'phase(1)']);
      expect(root.states['phase(1)']?.description).toBe(`Phase 2 of 2: ${name}.`);
    },
  );

  test('of a hundred phases is made at once, and is made of data', () => {
    const names = Array.from({ length: 100 }, (_, i) => `p${i}`);
    const { definition } = chartOf(...names) as unknown as { definition: object };
    expect(JSON.parse(JSON.stringify(definition)).states).toHaveProperty('phase(99)');
  });

  test('is still drawn for the docs', () => {
    expect(lifecyclePage()).toContain('stateDiagram-v2');
    expect(lifecyclePage()).toContain('](pictures/run-chart.svg)');
  });
});
