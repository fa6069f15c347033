import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
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

const source = fileURLToPath(new URL('../../../src/store/postgres', import.meta.url));

describe.skipIf(whyNoPostgres)('a database with names of others (edges 28)', () => {
  test('finds each function that a statement names in its schema: none is named without one', async () => {
    const { rows } = await server.pool({ max: 1 }).query('SELECT DISTINCT proname FROM pg_catalog.pg_proc');
    const functions = new Set(rows.map(({ proname }) => proname));
    // It is part of the grammar, which names the schema itself.
    functions.delete('extract');
    const named = globSync('**/*.ts', { cwd: source }).flatMap((file) => {
      const lines = readFileSync(`${source}/${file}`, 'utf8').split('\n');
      return lines.flatMap((line, i) =>
        [...line.matchAll(/(?<![\w.#$?])([a-z_0-9]+)\(/g)].map(([, name = '']) => ({
          name,
          at: `${file}:${i + 1} ${name}`,
        })),
      );
    });
    expect(named.filter(({ name }) => functions.has(name)).map(({ at }) => at)).toEqual([]);
  });

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
    expect((await store.due.take({ owner: 'three', ttlMs: 1_000, limit: 10 })).claims).toEqual([]);
    await store.outcomes.keep('ended', sampleOutcome('ended'), Date.now() + 3_600_000);
    expect(await other.outcomes.find('ended')).toEqual(sampleOutcome('ended'));
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

  test.for([
    ['the same types as one of PostgreSQL, in a schema before it', '<(float8, float8)', '%s,pg_catalog'],
    ['two numbers that PostgreSQL would convert first, in any schema of the search_path', '<(numeric, int4)', '%s'],
  ])(
    'whose search_path finds an operator for %s is refused when the store opens, and not where it is not found',
    async ([, operator = '', path = '']) => {
      const place = server.freshSchema();
      const [name = '', types = ''] = operator.split(/[()]/);
      const [left, right] = types.split(', ');
      await server.sql(`CREATE SCHEMA "${place}"`);
      await server.sql(`CREATE FUNCTION "${place}".never(${types}) RETURNS boolean AS $$ SELECT false $$ LANGUAGE sql`);
      await server.sql(
        `CREATE OPERATOR "${place}".${name} (LEFTARG = ${left}, RIGHTARG = ${right}, FUNCTION = "${place}".never)`,
      );
      const options = `-c search_path=${path.replace('%s', place)}`;
      const schema = server.freshSchema();
      const refused = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining(`the operator ${place}.${name}(`) };
      await using fresh = postgresStore({ pool: server.pool({ max: 1, options } as never), schema });
      await expect(fresh.save(sampleRecord('run'))).rejects.toMatchObject(refused);
      await using store = postgresStore({ pool: server.pool({ max: 1 }), schema });
      await store.save(sampleRecord('run'));
      expect(await store.load('run')).toEqual(sampleRecord('run'));
      for (const readOnly of [false, true]) {
        await using opened = postgresStore({ pool: server.pool({ max: 1, options } as never), schema, readOnly });
        await expect(opened.load('run')).rejects.toMatchObject(refused);
      }
    },
  );

  test('whose search_path changes after a store has opened is refused by the next store alone', async () => {
    const place = server.freshSchema();
    await server.sql(`CREATE SCHEMA "${place}"`);
    await server.sql(
      `CREATE FUNCTION "${place}".never(float8, float8) RETURNS boolean AS $$ SELECT false $$ LANGUAGE sql`,
    );
    await server.sql(`CREATE OPERATOR "${place}".< (LEFTARG = float8, RIGHTARG = float8, FUNCTION = "${place}".never)`);
    const [pool, schema] = [server.pool({ max: 1 }), server.freshSchema()];
    await using before = postgresStore({ pool, schema });
    await before.save(sampleRecord('run'));
    await pool.query(`SET search_path = "${place}", pg_catalog`);
    expect(await before.load('run')).toEqual(sampleRecord('run'));
    await using after = postgresStore({ pool, schema });
    const refused = { code: 'STORE_UNAVAILABLE', message: expect.stringContaining(`the operator ${place}.<(`) };
    await expect(after.load('run')).rejects.toMatchObject(refused);
    await pool.query('RESET search_path');
    expect(await after.load('run')).toEqual(sampleRecord('run'));
  });

  test('with an operator of a host for two texts, which PostgreSQL does not have, is used as any other', async () => {
    const place = server.freshSchema();
    await server.sql(`CREATE SCHEMA "${place}"`);
    await server.sql(`CREATE OPERATOR "${place}".+ (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.textcat)`);
    const options = `-c search_path=${place},pg_catalog`;
    await using store = postgresStore({
      pool: server.pool({ max: 1, options } as never),
      schema: server.freshSchema(),
    });
    await store.save(sampleRecord('run'));
    expect(await store.load('run')).toEqual(sampleRecord('run'));
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
