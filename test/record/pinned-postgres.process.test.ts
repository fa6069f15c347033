import { testClock } from 'pawl/testing';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { joinPieces, piecesIn } from '../../src/store/encoding/piece-refs.ts';
import { type PostgresStore, postgresStore } from '../../src/store/postgres/index.ts';
import { fixedWrites, type PinnedVersion } from '../fixtures/fixed-writes.ts';
import { expectAllEnds, expectAllRecords } from '../fixtures/pinned-ends.ts';
import { PINNED_AT } from '../fixtures/pinned-runs.ts';
import { hashOfPinned, textOfPinned } from '../fixtures/pinned-stores.ts';
import { postgresServer, whyNoPostgres } from '../fixtures/postgres-server.ts';

/** What a released version wrote is never edited. */
const pins = [
  {
    version: 1,
    hashes: {
      'postgres.sql': '59d2b20decab81aba15b4646023b2ec08379d29308a77e6bcb884934c22e683b',
      'written-postgres.sql': '9be356ca4ecd99681a23e9aa4469597338133c6ac08acf3552f9f571c1c35426',
    },
  },
  {
    version: 2,
    hashes: {
      'postgres.sql': '6d52384fb1e8f68334ba630ebc7d54a2571190f60b93ff5f050ba4c29b68ff6a',
      'written-postgres.sql': '3bf6e675c4d4d0b1f33bcec1178a4962d6b1145aaf22358845501a6a7c8cc917',
    },
  },
] as const;

const server = postgresServer(['fsync=off']);
let pool: pg.Pool | undefined;

function open(schema: string, options: { clock?: ReturnType<typeof testClock> } = {}): PostgresStore {
  pool ??= server.pool();
  return postgresStore({ pool, schema, ...options });
}

/** A schema of its own with what was pinned. */
async function restored(pin: 'postgres.sql' | 'written-postgres.sql', version: PinnedVersion): Promise<string> {
  const text = textOfPinned(pin, version);
  const schema = server.freshSchema();
  await server.sql(text.replaceAll(/\bpinned_(runs|writes)\b/g, schema));
  return schema;
}

/** These tell one write from another: they are others each time, and so are checksums of texts that name blobs. */
const drawn = ['token', 'body', 'bundle', 'pieces', 'no', 'sent_at'];

/**
 * The fields of a stored head: their order says nothing. The names of blobs stand between two marks. Those that are columns
 * were in the head too in the first layout.
 */
function fieldsOf(head: string, columns: { readonly [column: string]: unknown }): unknown {
  const parts = head.split('\u001a').map((part, i) => (i % 2 === 0 ? part : JSON.stringify(part)));
  const { version, revision, updated_at: updatedAt } = columns;
  const before = Object.entries({ version, revision, updatedAt }).map(([key, value]) => [key, Number(value)]);
  const fields = JSON.parse(parts.join('').replace(/^,/, '{')) as object;
  return Object.entries({ ...Object.fromEntries(before), ...fields }).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The stored blobs, by the body of their record and by their names. */
async function blobsOf(schema: string): Promise<Map<unknown, Map<string, string>>> {
  const blobs = new Map<unknown, Map<string, string>>();
  for (const { body, bundled } of await server.sql(`SELECT body, bundled FROM "${schema}".pieces`)) {
    const named = blobs.get(body) ?? new Map<string, string>();
    for (const { name, text } of piecesIn(String(bundled))) named.set(name, text);
    blobs.set(body, named);
  }
  return blobs;
}

/** A text with what it names: whether it names a whole message, or the large input in it, says nothing. */
function joined(text: string, blobs: ReadonlyMap<string, string> | undefined): string {
  return joinPieces(text, (name) => joined(blobs?.get(name) ?? '', blobs));
}

/** All rows of a store, without what is another one each time. */
async function rowsOf(schema: string): Promise<Record<string, unknown>> {
  const tables = await server.sql(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1',
    schema,
  );
  const rows: Record<string, unknown> = {};
  const blobs = await blobsOf(schema);
  for (const name of tables.map((table) => table.name ?? '').sort()) {
    const isOfRun = name === 'runs' || name === 'messages';
    // Under what a run is found: rows of an earlier layout do not say it, and are found by their records.
    const hidden = isOfRun ? [...drawn, 'checksum', 'agent', 'caller', 'fair', 'paused_by'] : drawn;
    const found = await server.sql(`SELECT * FROM "${schema}"."${name}"`);
    const shown = found.map((row) => {
      const texts: Record<string, unknown> = { ...row };
      if (name === 'runs') texts.head = fieldsOf(String(row.head), row);
      if (name === 'messages') texts.messages = joined(String(row.messages), blobs.get(row.body));
      return JSON.stringify(
        Object.entries(texts)
          .filter(([column]) => !hidden.includes(column))
          .sort(),
      );
    });
    rows[name] = shown.sort();
  }
  return rows;
}

describe.skipIf(whyNoPostgres).for(pins)('a PostgreSQL store as version $version left it', ({ version, hashes }) => {
  test.for(Object.entries(hashes))('%s is what it was, byte for byte (checkpoint 6)', ([pin, hash]) => {
    expect(hashOfPinned(pin, version)).toBe(hash);
  });

  test('gives every record as it was: loop, open step, pipeline, parent and child, outcome, command (checkpoint 2, 3)', async () => {
    await using store = open(await restored('postgres.sql', version));
    await expectAllRecords(store, version);
  });

  test('lets all of its runs continue to their ends, with no call made twice (recovery 8, executor 12)', async () => {
    await using store = open(await restored('postgres.sql', version));
    await expectAllEnds(store, version);
  });

  test('gets the same rows today for what is written: others need a new version and a step to it (checkpoint 6)', async () => {
    const schema = server.freshSchema();
    await using store = open(schema, { clock: testClock(PINNED_AT) });
    await fixedWrites(store, version);
    const pinned = await restored('written-postgres.sql', version);
    await using migrated = open(pinned);
    await migrated.listInterrupted();
    expect(await rowsOf(schema)).toEqual(await rowsOf(pinned));
  });
});
