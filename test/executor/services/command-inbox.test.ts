import { memoryStore } from 'pawl';
import type { Command, SentCommand } from 'pawl/stores/kit';
import { callTool, hang, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { CommandInbox, type CommandTarget } from '../../../src/executor/services/command-inbox.ts';
import { sampleRecord } from '../../../src/testing/store-contract/records.ts';
import { gate, hostOf, settle, toolOf, until } from '../../fixtures/host.ts';
import { afterCrash, type Hooks, watchedStore } from '../../fixtures/watched-store.ts';

const steer = (id: string): Command => ({ id, kind: 'steer', text: `say ${id}` });

/** A run that takes commands in, the inbox that looks for it, and the store in between. */
async function scene({ hooks = {}, obey }: { hooks?: Hooks; obey?: () => Promise<unknown> } = {}) {
  const clock = testClock();
  const store = watchedStore(hooks, memoryStore({ clock }));
  await store.save(sampleRecord('r'));
  const claim = await store.claim('r', 'me', 86_400_000);
  if (!claim) throw new Error('no claim');
  const obeyed: string[] = [];
  let commands: readonly string[] = [];
  const member: CommandTarget = {
    runId: 'r',
    claim,
    get commands() {
      return commands;
    },
    obey: async ({ command: { id } }) => {
      obeyed.push(id);
      commands = [...commands, id];
      await obey?.();
      return true;
    },
    forget: (ids) => {
      commands = commands.filter((id) => !ids.includes(id));
    },
  };
  const inbox = new CommandInbox(store, { clock, warn: () => {}, owner: 'me', everyMs: 500, ms: 1_000 });
  inbox.enter(member);
  const known = () => commands;
  const waiting = async () => (await store.commands.inbox({ runId: 'r' })).length;
  const send = (id: string) => store.commands.send('r', steer(id));
  return { clock, inbox, obeyed, known, waiting, send, end: () => inbox.leave(member) };
}

test('a look that began before a command was acknowledged, and ends after it, does not deliver it again', async () => {
  const slow = gate();
  const recorded = gate();
  let looks = 0;
  const after = ({ method }: { method: string }) =>
    method === 'commands.inbox' && ++looks === 2 ? slow.pass() : undefined;
  const { inbox, obeyed, send, waiting } = await scene({ hooks: { after }, obey: () => recorded.pass() });
  await send('a');
  await inbox.look();
  const second = inbox.look();
  await slow.reached;
  recorded.open();
  await settle();
  expect(await waiting()).toBe(0);
  slow.open();
  await second;
  expect(obeyed).toEqual(['a']);
});

test('a run that has ended while a look was under way is handed nothing of it: no process keeps it any more', async () => {
  const slow = gate();
  const after = ({ method }: { method: string }) => (method === 'commands.inbox' ? slow.pass() : undefined);
  const { inbox, obeyed, send, end } = await scene({ hooks: { after } });
  await send('a');
  const looking = inbox.look();
  await slow.reached;
  end();
  slow.open();
  await looking;
  expect(obeyed).toEqual([]);
});

describe('a command that was acknowledged, and is sent again because its sender heard no answer', () => {
  test('is taken out again and not obeyed a second time, for as long as any sender tries (supervision 9)', async () => {
    const { clock, obeyed, send, waiting } = await scene();
    for (let again = 0; again < 3; again++) {
      await send('a');
      await clock.advance(500);
      await settle();
      expect(await waiting()).toBe(0);
      await clock.advance(30_000);
    }
    expect(obeyed).toEqual(['a']);
  });

  test('is remembered for a minute, and of a run never more than a hundred (supervision 9)', async () => {
    const { clock, known, send } = await scene();
    for (let i = 0; i < 300; i++) {
      await send(String(i));
      if (i % 30 === 29) await clock.advance(500);
    }
    await clock.advance(500);
    await settle();
    expect(known()).toEqual(Array.from({ length: 100 }, (_, i) => String(i + 200)));
    await clock.advance(61_000);
    expect(known()).toEqual([]);
  });

  test('is not said again by the process that continues with the run (supervision 9, recovery 5)', async () => {
    const clock = testClock();
    const store = memoryStore({ clock });
    const looking = gate();
    const again = gate();
    let calls = 0;
    const look = toolOf('look', 'read', () => (++calls === 1 ? looking : again).pass());
    const script = [callTool('look', {}), callTool('look', { again: true })];
    const first = hostOf({ clock, script, tools: [look], store });
    await first.start({ runId: 'r' });
    await looking.reached;
    await store.commands.send('r', steer('a'));
    await clock.advance(500);
    looking.open();
    await again.reached;
    await until(async () => (await store.commands.inbox({ runId: 'r' })).length === 0);
    const left = await afterCrash(store);
    await left.commands.send('r', steer('a'));
    const second = hostOf({ clock, script: [hang()], tools: [toolOf('look')], store: left });
    await second.start({ runId: 'r' });
    await until(() => second.model.calls.length === 1);
    await clock.advance(1_000);
    expect(JSON.stringify(second.model.calls[0]?.messages).split('say a')).toHaveLength(2);
    expect((await left.load('r'))?.undelivered).toHaveLength(1);
    expect(await left.commands.inbox({ runId: 'r' })).toEqual([]);
  });
});

test('a cancel from another process ends its run although as many messages as may wait for it do (supervision 9)', async () => {
  const clock = testClock();
  const store = memoryStore({ clock });
  const owner = hostOf({ clock, store, script: [hang()] });
  const run = await owner.start({ runId: 'r' });
  await until(() => owner.model.calls.length === 1);
  const control = hostOf({ clock, store }).executor.control('r');
  const flood = async (from: number) => {
    for (let i = from; i < from + 1_000; i++) await store.commands.send('r', steer(String(i)));
  };
  // The owner looks when time passes: it takes the first thousand, and has no room for the second.
  await flood(0);
  await clock.advance(500);
  await until(async () => (await store.commands.inbox({ runId: 'r' })).length === 0);
  expect((await store.load('r'))?.undelivered).toHaveLength(1_000);
  await flood(1_000);
  await expect(control.steer('and another thing')).rejects.toMatchObject({ code: 'UNDELIVERED' });
  expect(await control.cancel('no more')).toBe('sent');
  await clock.advance(500);
  expect((await run.result).status).toBe('cancelled');
});

test('a run gets its commands although more than one answer holds wait for other runs of its process (supervision 9)', async () => {
  const store = memoryStore();
  const clock = testClock();
  const inbox = new CommandInbox(store, { clock, warn: () => {}, owner: 'me', everyMs: 500, ms: 1_000 });
  const obeyed: string[] = [];
  for (const runId of ['first', 'second', 'third']) {
    await store.save(sampleRecord(runId));
    const claim = (await store.claim(runId, 'me', 86_400_000)) ?? undefined;
    const obey = async ({ command: { id } }: SentCommand) => {
      obeyed.push(`${runId} ${id}`);
      // The first two have no place for what they are told.
      if (runId !== 'third') throw new Error('full');
      return true;
    };
    inbox.enter({ runId, claim, commands: [], obey, forget: () => {} });
  }
  for (const runId of ['first', 'second']) {
    for (let i = 0; i < 1_000; i++) await store.commands.send(runId, steer(String(i)));
  }
  await store.commands.send('third', steer('a'));
  await inbox.look();
  await settle();
  expect(obeyed.filter((line) => line.startsWith('third'))).toEqual(['third a']);
  expect(await store.commands.inbox({ runId: 'third' })).toEqual([]);
});
