import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { postgresStore } from '../../../src/store/postgres/index.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { gate, hostOf, toolOf, until } from '../../fixtures/host.ts';
import { postgresServer, whyNoPostgres } from '../../fixtures/postgres-server.ts';
import { TroubledPool } from '../../fixtures/postgres-trouble.ts';
import { startChild } from '../child-process.ts';

const server = postgresServer(['fsync=off']);
const steer = (id: string) => ({ id, kind: 'steer', text: `say ${id}` }) as const;

describe.skipIf(whyNoPostgres)('commands in a database (recovery 3)', () => {
  const open = () => {
    const schema = server.freshSchema();
    return { schema, store: postgresStore({ pool: server.pool(), schema }) };
  };

  test('what several processes send while the owner takes it out arrives once each', async () => {
    const { schema, store } = open();
    await store.save(sampleRecord('run'));
    const claim = await store.claim('run', 'me', 600_000);
    if (!claim) throw new Error('nobody else has the run');
    const children = [1, 2].map(() =>
      startChild({ script: './postgres/child.ts', role: 'send', path: server.url, argument: schema }),
    );
    await Promise.all(children.map((each) => each.next()));
    for (const each of children) each.tell();
    const taken: string[] = [];
    while (taken.length < 40) {
      const ids = (await store.commands.inbox({ owner: 'me' })).map(({ command }) => command.id);
      await store.commands.acknowledge(claim, ids);
      taken.push(...ids);
    }
    expect(await Promise.all(children.map((each) => each.next()))).toEqual(['sent', 'sent']);
    expect(await store.commands.inbox({ runId: 'run' })).toEqual([]);
    expect(new Set(taken).size).toBe(40);
    await Promise.all(children.map((each) => each.exited));
  });

  test('a run that is deleted while commands are sent to it takes all of them with it', async () => {
    const { schema, store } = open();
    const other = postgresStore({ pool: server.pool(), schema });
    let missing = 0;
    for (let round = 0; round < 20; round++) {
      await store.save(sampleRecord('run'));
      const send = (i: number) =>
        other.commands.send('run', steer(`${round}-${i}`)).catch((error: { code?: unknown }) => {
          expect(error.code).toBe('RUN_NOT_FOUND');
          missing += 1;
        });
      const sending = [0, 1, 2].map(send);
      if (round % 2 === 0) await sending[round % 3];
      const deleting = store.delete('run');
      sending.push(...[3, 4].map(send));
      await deleting;
      sending.push(send(5));
      await Promise.all(sending);
      expect(await server.sql(`SELECT count(*) FROM "${schema}".commands`)).toEqual([{ count: '0' }]);
    }
    expect(missing).toBeGreaterThan(0);
  });

  test('a command whose answer got lost is sent again, and waits once', async () => {
    const pool = new TroubledPool(server.pool());
    const schema = server.freshSchema();
    const store = postgresStore({ pool, schema });
    await store.save(sampleRecord('run'));
    for (const [i, fate] of (['unsent', 'lost'] as const).entries()) {
      pool.next(/INSERT INTO .*commands/s, fate);
      await store.commands.send('run', steer(String(i)));
    }
    expect(pool.fired).toBe(2);
    expect((await store.commands.inbox({ runId: 'run' })).map(({ command }) => command.id)).toEqual(['0', '1']);
  });

  test('a command whose answer got lost, and which its run took out meanwhile, reaches the model once (supervision 9)', async () => {
    const { schema, store } = open();
    const looks = [gate(), gate()];
    let calls = 0;
    const host = hostOf({
      script: [callTool('look', { first: true }), callTool('look'), reply('done')],
      tools: [toolOf('look', 'read', () => looks[calls++]?.pass())],
      store,
      defaults: { controlMs: 50 },
    });
    const run = await host.start({ runId: 'r' });
    await looks[0]?.reached;
    const { executor, trouble, isBack } = senderWhoseAnswerIsLost(schema);
    const sending = executor.control('r').steer('also check X');
    await until(() => trouble.fired === 1);
    looks[0]?.open();
    await looks[1]?.reached;
    await until(async () => (await store.commands.inbox({ runId: 'r' })).length === 0);
    isBack.resolve();
    expect(await sending).toBe('sent');
    await until(async () => (await store.commands.inbox({ runId: 'r' })).length === 0);
    looks[1]?.open();
    const { messages } = await run.result;
    expect(JSON.stringify(messages).split('also check X')).toHaveLength(2);
  });

  test('a cancel whose answer got lost, and which was obeyed meanwhile, was sent (supervision 9)', async () => {
    const { schema, store } = open();
    const host = hostOf({ script: [hang()], store, defaults: { controlMs: 50 } });
    const run = await host.start({ runId: 'r' });
    const { executor, isBack } = senderWhoseAnswerIsLost(schema);
    const cancelling = executor.control('r').cancel();
    expect((await run.result).status).toBe('cancelled');
    isBack.resolve();
    expect(await cancelling).toBe('sent');
    await expect(store.commands.send('r', steer('late'))).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
  });

  /** It reaches the server again when it is told to. */
  function senderWhoseAnswerIsLost(schema: string) {
    const trouble = new TroubledPool(server.pool());
    const isBack = Promise.withResolvers<void>();
    const connect = trouble.connect.bind(trouble);
    trouble.next(/INSERT INTO .*commands/s, 'lost');
    trouble.connect = async () => {
      if (trouble.fired > 0) await isBack.promise;
      return connect();
    };
    const { executor } = hostOf({ store: postgresStore({ pool: trouble, schema }) });
    return { executor, trouble, isBack };
  }

  test('one that was changed in the table is not believed, and hides none of the others', async () => {
    const { schema, store } = open();
    await store.save(sampleRecord('run'));
    for (const id of ['a', 'b', 'c']) await store.commands.send('run', steer(id));
    await server.sql(
      `UPDATE "${schema}".commands SET command = replace(command, 'say', 'do') WHERE command_id = '"b"'`,
    );
    expect((await store.commands.inbox({ runId: 'run' })).map(({ command }) => command.id)).toEqual(['a', 'c']);
  });
});
