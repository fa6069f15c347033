import { expect, test } from 'vitest';
import { median, perStep } from './measure.ts';
import { amount, markdownOf, type Report, type Row, storedReport, tableOf } from './report.ts';

const cpu: Row = { what: 'CPU a step', value: 3.456, unit: 'x', budget: 2.5, note: '0.30 ms' };
const rate: Row = { what: 'steps a second', value: 1.05, unit: 'x', budget: 1.8, isFloor: true, note: '4,000 steps/s' };
const bytes: Row = { what: 'bytes a step', value: Number.NaN, unit: 'KB', budget: 8, note: 'a | b' };

function report(rows: readonly Row[], more: Partial<Report> = {}): Report {
  const parts = [{ title: 'Steps', rows, broken: [] }];
  return { machine: 'Node 24, a machine', begunAt: '2026-11-24T05:00:00.000Z', isQuick: false, parts, ...more };
}
const lineOf = (text: string, start: string) => text.split('\n').find((line) => line.startsWith(start));

test('the tables of docs/speed.md have a row for each figure, and emphasize what is over or under its budget', () => {
  const text = markdownOf([report([cpu, { ...cpu, what: 'wall time', value: 2.5 }, rate, bytes])]);
  expect(text).toContain('## Steps\n\n| what | measured | budget |  | made of |\n| --- | --- | --- | --- | --- |\n');
  expect(lineOf(text, '| CPU')).toBe('| CPU a step | 3.46x | 2.50x | **over** | 0.30 ms |');
  expect(lineOf(text, '| wall')).toBe('| wall time | 2.50x | 2.50x | within | 0.30 ms |');
  expect(lineOf(text, '| steps')).toBe('| steps a second | 1.05x | at least 1.80x | **under** | 4,000 steps/s |');
  expect(lineOf(text, '| bytes')).toBe('| bytes a step | not counted | 8.00 KB | not counted | a \\| b |');
});

test('the figures of several runs of the bench stand beside each other, and all of them must be within the budget', () => {
  const again = report(
    [
      { ...rate, value: 1.9 },
      { ...cpu, value: 2.4, note: '0.29 ms' },
    ],
    { begunAt: '2026-11-24T07:00:00.000Z' },
  );
  const text = markdownOf([report([cpu, rate]), again]);
  expect(lineOf(text, '| CPU')).toBe('| CPU a step | 3.46x and 2.40x | 2.50x | **over** | 0.30 ms / 0.29 ms |');
  expect(lineOf(text, '| steps')).toContain('| 1.05x and 1.90x | at least 1.80x | **under** |');
  expect(text.split('\n')[0]).toBe(
    'Node 24, a machine. Begun at 2026-11-24T05:00:00.000Z and 2026-11-24T07:00:00.000Z',
  );
  const within = markdownOf([report([{ ...cpu, value: 2.3 }]), report([{ ...cpu, value: 2.4 }])]);
  expect(lineOf(within, '| CPU')).toContain('| within |');
});

test('a part or a row that only one of several runs has measured is shown with the figure of that run', () => {
  const other = { parts: [{ title: 'Memory', rows: [bytes], broken: [] }] };
  const text = tableOf([report([cpu]), report([rate]), report([], other)]);
  expect(lineOf(text, 'CPU a step')).toMatch(/^CPU a step +3\.46x +2\.50x +over +0\.30 ms$/);
  expect(lineOf(text, 'steps a second')).toMatch(/^steps a second +1\.05x +at least 1\.80x +under/);
  expect(text.indexOf('\nMemory\n')).toBeGreaterThan(text.indexOf('\nSteps\n'));
  expect(lineOf(text, 'bytes a step')).toMatch(/not counted/);
});

test('a figure without a budget has no verdict', () => {
  const { budget: _, ...free } = cpu;
  expect(lineOf(markdownOf([report([free])]), '| CPU')).toBe('| CPU a step | 3.46x |  |  | 0.30 ms |');
});

test.each([tableOf, markdownOf])('%o says that quick figures are rough, and which promises were broken', (print) => {
  const broken = [{ promise: 'all runs end', seen: '3 of 4' }];
  const text = print([report([], { isQuick: true, parts: [{ title: 'Steps', rows: [cpu], broken }] })]);
  expect(text).toContain('Quick figures are rough');
  expect(text).toContain('BROKEN PROMISE: all runs end: 3 of 4');
  expect(print([report([cpu])])).not.toContain('rough');
});

test('figures that were printed as JSON are read as they were', () => {
  const original = report([cpu, rate, bytes]);
  expect(storedReport(JSON.stringify(original))).toEqual(original);
});

test.each(['{}', 'null', '[]', '{"machine":"x"}', '{"rows":[]}'])('%s is refused as figures', (text) => {
  expect(() => storedReport(text)).toThrow('no report of the bench');
});

test('amounts have three digits', () => {
  expect([0.1234, 9.876, 12.345, 123.45, -12.345].map((value) => amount(value, 'ms'))).toEqual([
    ...['0.12 ms', '9.88 ms', '12.3 ms', '123 ms', '-12.3 ms'],
  ]);
  expect(amount(2, 'x')).toBe('2.00x');
});

test('a median is the middle value, or the mean of the two in the middle', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([9, 1, 5, 2])).toBe(3.5);
  expect(median([])).toBeNaN();
});

test('costs are divided by the steps', () => {
  expect(perStep({ cpuMs: 10, wallMs: 20, bytes: 3_000 }, 10)).toEqual({ cpuMs: 1, wallMs: 2, bytes: 300 });
});
