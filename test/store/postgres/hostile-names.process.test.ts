import { describe, expect, test } from 'vitest';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { nextStep, sampleOutcome, sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';

const server = postgresServer(['fsync=off']);

/** Functions of the server's names in `public`, found before its own: time stands a day ahead, and texts are others. */
const shadows = [
  `clock_timestamp() RETURNS timestamptz AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 day' $$ LANGUAGE sql VOLATILE`,
  `statement_timestamp() RETURNS timestamptz AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 day' $$ LANGUAGE sql VOLATILE`,
  `decode(text, text) RETURNS bytea AS $$ SELECT 'shadow'::bytea $$ LANGUAGE sql`,
  `encode(bytea, text) RETURNS text AS $$ SELECT 'shadow' $$ LANGUAGE sql`,
  `octet_length(text) RETURNS int AS $$ SELECT 0 $$ LANGUAGE sql`,
  `floor(numeric) RETURNS numeric AS $$ SELECT 0::numeric $$ LANGUAGE sql`,
];

describe.skipIf(whyNoPostgres)('a database with names of others (edges 28)', () => {
  test('whose search_path finds functions of its own before those of PostgreSQL fools no store: a live run is not taken over', async () => {
    const schema = server.freshSchema();
    const place = server.freshSchema();
    await server.sql(`CREATE SCHEMA "${place}"`);
    for (const shadow of shadows) await server.sql(`CREATE FUNCTION "${place}".${shadow}`);
    const pool = server.pool({ max: 2, options: `-c search_path=${place},pg_catalog` } as never);
    const shown = await pool.query("SELECT encode('a'::bytea, 'hex') AS text");
    expect(shown.rows).toEqual([{ text: 'shadow' }]);
    await using store = postgresStore({ pool, schema });
    const claim = await store.claim('run', 'one', 60_000);
    await store.save(sampleRecord('run'), { claim: claim ?? undefined });
    const step = nextStep(sampleRecord('run'));
    await store.append(step.delta, { claim: claim ?? undefined });
    await using other = postgresStore({ pool: server.pool({ max: 2 }), schema });
    expect(await other.claim('run', 'two', 60_000)).toBeNull();
    expect(await store.claim('run', 'two', 60_000)).toBeNull();
    expect(await store.load('run')).toEqual(step.record);
    expect((await store.takeDue({ owner: 'three', ttlMs: 1_000, limit: 10 })).claims).toEqual([]);
    await store.keepOutcome('ended', sampleOutcome('ended'), Date.now() + 3_600_000);
    expect(await other.outcome('ended')).toEqual(sampleOutcome('ended'));
  });

  test.for([
    [
      'a trigger',
      (schema: string) => [
        `CREATE FUNCTION "${schema}".drop_it() RETURNS trigger AS $$ BEGIN RETURN NULL; END $$ LANGUAGE plpgsql`,
        `CREATE TRIGGER audit BEFORE INSERT ON "${schema}".messages FOR EACH ROW EXECUTE FUNCTION "${schema}".drop_it()`,
      ],
      /messages has the trigger audit, which may change what is stored: drop it$/,
    ],
    [
      'a rule',
      (schema: string) => [`CREATE RULE quiet AS ON DELETE TO "${schema}".commands DO INSTEAD NOTHING`],
      /commands has the rule quiet, which may change what is stored: drop it$/,
    ],
    [
      'a view in the place of a table',
      (schema: string) => [
        `ALTER TABLE "${schema}".outcomes RENAME TO kept`,
        `CREATE VIEW "${schema}".outcomes AS SELECT * FROM "${schema}".kept`,
      ],
      /outcomes is no table; Pawl keeps its records in tables: put the table back, or choose another schema$/,
    ],
  ] as const)('with %s on the tables of a store is refused when the store opens', async ([, change, message]) => {
    const schema = server.freshSchema();
    const store = postgresStore({ pool: server.pool(), schema });
    await store.save(sampleRecord('run'));
    for (const statement of change(schema)) await server.sql(statement);
    for (const readOnly of [false, true]) {
      await using opened = postgresStore({ pool: server.pool(), schema, readOnly });
      await expect(opened.load('run')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringMatching(message),
      });
    }
  });

  test('with a view of a host on the tables, beside them, is used as any other', async () => {
    const schema = server.freshSchema();
    const store = postgresStore({ pool: server.pool(), schema });
    await store.save(sampleRecord('run'));
    await server.sql(`CREATE VIEW "${schema}".mine AS SELECT count(*) FROM "${schema}".runs`);
    await using opened = postgresStore({ pool: server.pool(), schema });
    expect(await opened.load('run')).toEqual(sampleRecord('run'));
  });
});
