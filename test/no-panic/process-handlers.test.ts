import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { gate, hostOf, toolOf } from '../fixtures/host.ts';

const watched = [
  'uncaughtException',
  'uncaughtExceptionMonitor',
  'unhandledRejection',
  'SIGTERM',
  'SIGINT',
  'exit',
  'beforeExit',
];
const listeners = () => Object.fromEntries(watched.map((name) => [name, process.listenerCount(name)]));

test('a run installs no handler for errors, signals and the end of its process: those are the host’s (faults 26)', async () => {
  const before = listeners();
  const second = gate();
  const script = [callTool('look'), () => second.pass().then(() => reply('done'))];
  const host = hostOf({ script, tools: [toolOf('look')] });
  const run = await host.start({ runId: 'r' });
  await second.reached;
  expect(listeners()).toEqual(before);
  second.open();
  expect((await run.result).status).toBe('ok');
  expect(listeners()).toEqual(before);
});
