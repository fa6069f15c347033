import { expect, test } from 'vitest';
import { peerTable } from './peer-table.ts';

test('the table of the peers has ratios to the floor, says whose CPU is not counted, and names who is skipped and why', () => {
  const lines = peerTable([
    { name: 'floor', cpuMs: 0.1, wallMs: 0.2, durable: 'a row' },
    { name: 'Pawl', cpuMs: 0.45, wallMs: 0.6, durable: 'one commit' },
    { name: 'DBOS', cpuMs: 1.2, wallMs: 3, durable: 'two rows', aside: 'PostgreSQL' },
    { name: 'LangGraph', skipped: 'no\npackages | here' },
  ]).split('\n');
  expect(lines.slice(2)).toEqual([
    '| floor | 0.10 ms | 1.00x | 0.20 ms | a row |',
    '| Pawl | 0.45 ms | 4.50x | 0.60 ms | one commit |',
    '| DBOS | 1.20 ms, PostgreSQL not counted | 12.0x | 3.00 ms | two rows |',
    '| LangGraph | skipped: no packages   here | | | |',
  ]);
});

test('without a floor the table of the peers has no ratios', () => {
  const costs = [
    { name: 'floor', skipped: 'no disk' },
    { name: 'Pawl', cpuMs: 0.45, wallMs: 0.6, durable: 'one commit' },
  ];
  expect(peerTable(costs).split('\n').at(-1)).toBe('| Pawl | 0.45 ms |  | 0.60 ms | one commit |');
});
