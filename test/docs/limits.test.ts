import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { numbersOf, shownLimits } from './limits.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Bounds that no host, model or user meets: they cut work into parts, or memory that is only a help. */
const inner = new Set([
  // Writes, reads and deletes that share a commit, a statement, or a turn of the event loop.
  ...['MAX_GROUP', 'MAX_GROUP_CHARS', 'MAX_KEYS', 'MAX_LINES', 'MAX_LOADS', 'MAX_NAMED', 'MAX_READS', 'MAX_REMOVED'],
  ...['MAX_ENDED_PAGE', 'MAX_ROW_CHARS', 'MAX_SEND_MS', 'MAX_TAKEN', 'MAX_WRITE_CHARS', 'MOST_LEAVING', 'MOST_TAKEN'],
  // How a run that ended is found: longer ids share an entry of the index.
  'MAX_KEY_CHARS',
  'MAX_SAID_CHARS',
  // What is kept open or remembered, and is found again at a cost.
  ...[
    'MAX_ANSWERED',
    'MAX_DELIVERED',
    'MAX_EARLY',
    'MAX_KEPT_ACTORS',
    'MAX_PARENTS',
    'MAX_RUNS',
    'MAX_SETTLED',
    'MAX_SKIPPED',
    'MAX_STUCK',
    'MAX_VENDORS',
    'MAX_WARNED',
    'MAX_WARNINGS',
  ],
  // Pauses and measurements.
  ...['MAX_EMPTY', 'MAX_PAUSE_MS', 'MAX_TRIES', 'MAX_TURNS', 'MOST_ERROR'],
  // How much of an error, a value or a run is looked at or printed for a person.
  ...[
    'MAX_ABOVE',
    'MAX_ASKED_CHARS',
    'MAX_CAUSES',
    'MAX_COMPARED_ISSUES',
    'MAX_DAMAGE',
    'MAX_VISITED',
    'MAX_WHY',
    'MAX_WITH_ALL_ISSUES',
    'MAX_RULE',
    'MOST_BYTES',
  ],
  ...[
    'MOST_COMMANDS',
    'MOST_DESCENDANTS',
    'MAX_PLACE',
    'MAX_PLACE_CHARS',
    'MAX_THINGS',
    'MAX_WAIT_ID',
    'MOST_CONNECTIONS',
    'MOST_REQUESTS',
  ],
  // What the ready escalator shows to its model, and sums of a budget beyond all measure.
  ...['MAX_CODE_CHARS', 'MAX_LOOKS', 'MAX_MESSAGES', 'MAX_OUTPUT_TOKENS', 'MAX_UNITS'],
  // A workflow leaves the event loop after so many transitions; the limits of its open calls and its work, given to its definition;
  // how many transitions without an event one event names.
  ...['MAX_AT_ONCE', 'MAX_CALLS', 'MAX_TOOK'],
  // A count of one message beyond all measure.
  'MAX_COUNT',
  // How far a stop condition of the AI SDK is asked.
  'MOST_STEPS',
  // The testing kit.
  ...['MAX_HUNG', 'MAX_MOVES', 'MAX_PAGES', 'MAX_STEPS'],
]);

describe('the page of limits', () => {
  const named = new Set(numbersOf(root).flatMap(({ name }) => (/^(?:MAX|MOST)_/.test(name) ? [name] : [])));

  test('has each bound of the code, but for those that stand here as inner ones', () => {
    const missing = [...named].filter((name) => !shownLimits.has(name) && !inner.has(name));
    expect(missing, 'a line in test/docs/limits-table.ts, or a name here').toEqual([]);
  });

  test('leaves out no bound that it has, and none that is gone', () => {
    expect([...inner].filter((name) => shownLimits.has(name) || !named.has(name))).toEqual([]);
  });

  test('has each default of a run', () => {
    const defaults = numbersOf(root).filter(({ path }) => path === 'src/executor/host/defaults.ts');
    const names = defaults.map(({ name }) => name).filter((name) => !/^[A-Z_]+$/.test(name));
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !shownLimits.has(name))).toEqual([]);
  });
});
