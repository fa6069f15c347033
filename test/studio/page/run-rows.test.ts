import { describe, expect, test } from 'vitest';
import { age, clockTime, short, size, span, usd } from '../../../src/studio/page/parts/amounts.ts';
import { escapedHtml } from '../../../src/studio/page/parts/escaped.ts';
import {
  bounded,
  fits,
  held,
  labelIn,
  merged,
  rowsOfRuns,
  totalsOf,
  unfolded,
} from '../../../src/studio/page/runs/run-rows.ts';
import type { RunLine } from '../../../src/studio/wire.ts';

const line = (runId: string, more: Partial<RunLine> = {}): RunLine => ({
  runId,
  agentId: 'clerk',
  agentName: 'Help desk clerk',
  prompt: 'My printer is on fire.',
  state: 'run',
  where: 'step 1',
  steps: 0,
  tokens: 0,
  updatedAt: 1_000,
  children: 0,
  labels: {},
  ...more,
});
const mapOf = (...lines: RunLine[]) => new Map(lines.map((each) => [each.runId, each]));
const all = { states: [], text: '' };

describe('the list of runs', () => {
  test('its head has the totals of what it lists (studio 1)', () => {
    const lines = [line('a', { tokens: 1_200, usd: 0.5 }), line('b', { tokens: 300, usd: 0.25 }), line('c')];
    expect(totalsOf(lines, false)).toBe('3 runs · 1.5k tokens · $0.7500');
    expect(totalsOf(lines.slice(2), true)).toBe('1 run and more');
  });

  test('groups are in the order: needs you, running, waiting, no process, ended (studio 1)', () => {
    const lines = (['ok', 'park', 'wait', 'run', 'you', 'cut', 'idle'] as const).map((state) => line(state, { state }));
    const shown = rowsOfRuns(lines, all).map((row) => row.group ?? row.line?.runId);
    expect(shown).toEqual([
      ...['Needs you', 'you', 'Running', 'run', 'Waiting for time or an event', 'wait'],
      ...['No process works on it', 'idle', 'park', 'Ended', 'cut', 'ok'],
    ]);
  });

  test('in a group the newest run is first, and a live one before all (studio 1)', () => {
    const { updatedAt: _, ...live } = line('live');
    const rows = rowsOfRuns([line('old', { updatedAt: 1 }), line('new', { updatedAt: 2 }), live], all);
    expect(rows.map((row) => row.line?.runId)).toEqual([undefined, 'live', 'new', 'old']);
  });

  test('a filter by state, text and label narrows the list (studio 1)', () => {
    const one = line('a', { labels: { tenant: 'acme' } });
    expect(fits(one, { states: ['you'], text: '' })).toBe(false);
    expect(fits(one, { states: ['run'], text: 'PRINTER' })).toBe(true);
    expect(fits(one, { states: [], text: 'label:tenant=acme fire' })).toBe(true);
    expect(fits(one, { states: [], text: 'label:tenant=globex' })).toBe(false);
    expect(labelIn('a label:x=y=z b')).toEqual({ label: ['x', 'y=z'], rest: 'a b' });
    expect(labelIn('label:=x')).toEqual({ rest: 'label:=x' });
  });

  test('a filter by days has the runs that ended then, and no open one (studio 1, operations 45)', () => {
    const days = { states: [], text: '', since: 1_000, until: 2_000 };
    const ended = (updatedAt: number) => line('a', { state: 'ok', updatedAt });
    expect([999, 1_000, 1_999, 2_000].map((at) => fits(ended(at), days))).toEqual([false, true, true, false]);
    expect(fits(line('a', { state: 'idle', updatedAt: 1_500 }), days)).toBe(false);
    expect(fits(ended(5_000), { ...all, since: 1_000 })).toBe(true);
    expect(fits(ended(5_000), { ...all, until: 2_000 })).toBe(false);
  });

  test('a changed line replaces its old one, and a new run waits (studio 15)', () => {
    const { lines, fresh } = merged(mapOf(line('a')), [line('a', { state: 'ok' }), line('b')]);
    expect(lines.get('a')?.state).toBe('ok');
    expect(lines.has('b')).toBe(false);
    expect(fresh.map(({ runId }) => runId)).toEqual(['b']);
  });

  test('under the pointer each run stays where it is, with its newest state (studio 15)', () => {
    const before = rowsOfRuns([line('a', { updatedAt: 2 }), line('b', { updatedAt: 1 })], all);
    const after = held(before, mapOf(line('a', { state: 'ok' }), line('b', { updatedAt: 9 })));
    expect(after.map((row) => row.line?.runId)).toEqual([undefined, 'a', 'b']);
    expect(after[1]?.line?.state).toBe('ok');
  });

  test('children are folded under their root until they are asked for (studio 1)', () => {
    const rows = rowsOfRuns([line('root', { children: 2 })], all);
    expect(unfolded(rows, new Map())).toEqual(rows);
    const open = unfolded(rows, new Map([['root', [line('~x'), line('~y')]]]));
    expect(open.map((row) => row.line?.runId)).toEqual([undefined, 'root', '~x', '~y']);
  });

  test('a tab keeps 300 rows, open runs before ended ones (studio 20)', () => {
    const lines = Array.from({ length: 400 }, (_, i) => line(`ended-${i}`, { state: 'ok', updatedAt: 10_000 + i }));
    const kept = bounded(mapOf(...lines, line('asks', { state: 'you', updatedAt: 1 })));
    expect(kept.size).toBe(300);
    expect(kept.has('asks')).toBe(true);
    expect(kept.has('ended-399')).toBe(true);
    expect(kept.has('ended-0')).toBe(false);
  });
});

describe('texts', () => {
  test('characters that hide or reorder a text are shown as escapes (studio 16)', () => {
    expect(escapedHtml('a\u202eb\u0000c\u200bd\ufeffe\u{e0041}f\ud800g')).toBe(
      'a\\u202eb\\u0000c\\u200bd\\ufeffe\\ue0041f\\ud800g',
    );
  });

  test('letters, emoji, tabs and line ends stay as they are (studio 16)', () => {
    const text = 'Größe\t日本語 👍\nمرحبا';
    expect(escapedHtml(text)).toBe(text);
  });

  test('numbers and times are short, and have units', () => {
    expect([short(999), short(30_756), short(1_200_000)]).toEqual(['999', '30.8k', '1.2M']);
    expect([usd(0.0611), usd(123.456)]).toEqual(['0.0611', '123.46']);
    expect([size(12), size(148_000), size(5_000_000)]).toEqual(['12 B', '148 KB', '5.0 MB']);
    expect([age(10), age(48_000), age(240_000), age(3 * 86_400_000)]).toEqual(['now', '48s', '4m', '3d']);
    expect([span(86), span(4_900), span(252_000), span(187_200_000)]).toEqual([
      '86 ms',
      '4.9 s',
      '4 m 12 s',
      '2 d 4 h',
    ]);
    expect(clockTime(new Date(2026, 0, 2, 12, 4, 9).getTime(), new Date(2026, 0, 2).getTime())).toBe('12:04:09');
  });
});
