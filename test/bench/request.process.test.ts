import { expect, test } from 'vitest';
import { commitOf, ratioOf } from './against.ts';
import { parts } from './parts.ts';
import { requestOf } from './request.ts';

const ask = (...args: string[]) => requestOf(args, parts);
const measured = (...args: string[]) => {
  const request = ask(...args);
  if (request.kind !== 'measure') throw new Error(JSON.stringify(request));
  return request;
};
const textOf = (...args: string[]) => {
  const request = ask(...args);
  if (request.kind !== 'text') throw new Error(JSON.stringify(request));
  return request.text;
};

test('the bench without options measures all parts and prints a table', () => {
  expect(measured()).toEqual({ kind: 'measure', parts, isQuick: false, form: 'table' });
});

test('the bench with --quick measures the core parts', () => {
  const { parts: chosen, isQuick } = measured('--quick');
  expect(isQuick).toBe(true);
  expect(chosen).toEqual(parts.filter(({ isCore }) => isCore));
  expect(chosen.length).toBeGreaterThan(0);
  expect(chosen.length).toBeLessThan(parts.length);
});

test('the bench with --part measures the named parts in its own order, each once, also quickly', () => {
  const { parts: chosen, isQuick } = measured('--part', 'fleet', '--quick', '--part=steps', '--part', 'fleet');
  expect(chosen.map(({ name }) => name)).toEqual(['steps', 'fleet']);
  expect(isQuick).toBe(true);
});

test('a part that the bench does not have is an error that names all parts', () => {
  const request = ask('--part', 'steps', '--part', 'wings');
  expect(request).toMatchObject({ kind: 'wrong', message: expect.stringContaining('there is no part "wings"') });
  for (const { name, title } of parts) {
    expect(request).toMatchObject({ message: expect.stringMatching(new RegExp(`\\b${name} +${title}`)) });
  }
});

test.each([['--prat', 'steps'], ['steps'], ['--part'], ['--quick=yes']])('the bench refuses %s %s', (...args) => {
  expect(ask(...args)).toMatchObject({ kind: 'wrong', message: expect.stringContaining('--help') });
});

test('the bench prints one form only', () => {
  expect(measured('--json').form).toBe('json');
  expect(measured('--markdown').form).toBe('markdown');
  expect(ask('--json', '--markdown')).toMatchObject({ kind: 'wrong', message: expect.stringContaining('exclude') });
});

test('the bench with --from prints stored figures and measures nothing', () => {
  const stored = { kind: 'stored', paths: ['a.json', 'b.json'], form: 'markdown' };
  expect(ask('--from', 'a.json', '--markdown', '--from', 'b.json')).toEqual(stored);
  expect(ask('--from', 'a.json', '--quick').kind).toBe('wrong');
  expect(ask('--from', 'a.json', '--part', 'steps').kind).toBe('wrong');
});

test('the bench with --against compares with one commit and measures no other part', () => {
  const compare = { kind: 'compare', commit: 'HEAD~1', isQuick: true, form: 'table' };
  expect(ask('--against', 'HEAD~1', '--quick')).toEqual(compare);
  expect(ask('--against', 'HEAD~1', '--part', 'steps').kind).toBe('wrong');
  expect(ask('--against', 'HEAD~1', '--from', 'a.json').kind).toBe('wrong');
});

test('a commit that this clone does not have is an error that names it, also one that looks like an option of Git', () => {
  for (const name of ['no-such-commit', '--exec-path', ''])
    expect(() => commitOf(name)).toThrow(`this clone has no commit ${JSON.stringify(name)}.`);
});

test('the ratio of two builds is the geometric mean of their rounds, with two standard errors', () => {
  expect(ratioOf([2, 8], [2, 2]).mean).toBeCloseTo(2);
  expect(ratioOf([3, 3, 3], [2, 2, 2])).toEqual({ mean: 1.5, error: 0 });
  expect(ratioOf([2, 8], [2, 2]).error).toBeCloseTo(2 * Math.log(2));
});

test('the help of the bench names each option, and its list each part', () => {
  const help = textOf('--help', '--quick');
  for (const option of ['part', 'list', 'quick', 'json', 'markdown', 'against', 'from', 'help'])
    expect(help).toContain(`--${option} `);
  const lines = textOf('--list').split('\n');
  expect(lines).toHaveLength(parts.length);
  for (const [i, { name, title, isCore }] of parts.entries()) {
    expect(lines[i]).toMatch(new RegExp(`^${isCore ? '\\*' : ' '} ${name} +${title}$`));
  }
});

test('each part of the bench has a name of its own', () => {
  expect(new Set(parts.map(({ name }) => name)).size).toBe(parts.length);
});
