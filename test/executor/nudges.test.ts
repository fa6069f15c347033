import { type Message, memoryStore } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';
import { notingCritic } from '../fixtures/noting-ports.ts';

const texts = (messages: readonly Message[] = []) =>
  messages.flatMap((message) =>
    message.role === 'user' ? message.content.map((part) => (part.type === 'text' ? part.text : part.type)) : [],
  );

/** A run that waits within its first tool call. */
async function inFirstCall(script: readonly ScriptedEntry[], options: Parameters<typeof hostOf>[0] = {}) {
  const held = gate<string>();
  const critic = notingCritic();
  const tools = [toolOf('look', 'read', () => held.pass())];
  const host = hostOf({ script: [callTool('look'), ...script], tools, ports: { critic }, ...options });
  const run = await host.start({ runId: 'r' });
  await held.reached;
  return {
    ...host,
    run,
    watched: critic.watched[0] as NonNullable<(typeof critic.watched)[0]>,
    goOn: () => held.open('seen'),
  };
}

describe('a nudge', () => {
  test('is read before the next step, after what the host has said (supervision 2, executor 10)', async () => {
    const { run, model, watched, goOn } = await inFirstCall([reply('end')]);
    watched.nudge('One.');
    await run.steer('From the host.');
    watched.nudge('Two.');
    await run.steer('And more.');
    goOn();
    const { messages } = await run.result;
    const said = ['Go.', 'From the host.', 'And more.', 'One.', 'Two.'];
    expect(texts(model.calls[0]?.messages)).toEqual(['Go.']);
    expect(texts(model.calls[1]?.messages)).toEqual(said);
    expect(texts(messages)).toEqual(said);
    expect(messages.map(({ role }) => role).slice(0, 3)).toEqual(['user', 'assistant', 'tool']);
  });

  test('is stored at once, apart from the transcript, until a turn takes it in (supervision 2)', async () => {
    const store = memoryStore();
    const { watched, goOn, model } = await inFirstCall([() => new Promise(() => {})], { store });
    watched.nudge('Look closer.');
    await until(async () => (await store.load('r'))?.nudges?.length === 1);
    expect(texts((await store.load('r'))?.nudges)).toEqual(['Look closer.']);
    expect(texts((await store.load('r'))?.messages)).toEqual(['Go.']);
    goOn();
    await until(() => model.calls.length === 2);
    expect(texts(model.calls[1]?.messages)).toEqual(['Go.', 'Look closer.']);
  });

  test('is in the transcript of the record as soon as the step after it is (executor 11)', async () => {
    const store = memoryStore();
    const script = [callTool('look'), () => new Promise<never>(() => {})];
    const { watched, goOn } = await inFirstCall(script, { store });
    watched.nudge('Look closer.');
    goOn();
    await until(async () => (await store.load('r'))?.iteration === 2);
    const record = await store.load('r');
    expect(texts(record?.messages)).toEqual(['Go.', 'Look closer.']);
    expect(record).not.toHaveProperty('nudges');
  });

  test('that no model read any more is no message of the host’s that was not delivered', async () => {
    const { run, watched, goOn } = await inFirstCall([hang()]);
    watched.nudge('Look closer.');
    const result = await run.cancel();
    goOn();
    expect(result.undelivered).toEqual([]);
  });

  test('reaches the phase in progress, and a phase that begins after it (pipeline 10)', async () => {
    const phases = [
      { name: 'a', instructions: 'A' },
      { name: 'b', instructions: 'B' },
    ];
    const second = gate();
    const script: ScriptedEntry[] = [reply('a'), () => second.pass().then(() => callTool('look')), reply('b')];
    const { run, model, watched, goOn } = await inFirstCall(script, { agent: { phases } });
    watched.nudge('Look closer.');
    goOn();
    await second.reached;
    watched.nudge('Hurry.');
    second.open();
    await run.result;
    const heard = model.calls.map(({ system, messages }) => `${system}: ${texts(messages).join(' ')}`);
    expect(heard).toEqual(['A: Go.', 'A: Go. Look closer.', 'B: Go.', 'B: Go. Hurry.']);
  });

  test.for([
    ['empty', ' '],
    ['no text', { text: 'x' }],
  ] as const)('that is %s is none', async ([, text]) => {
    const { run, watched, goOn } = await inFirstCall([reply('end')]);
    watched.nudge(text as never);
    goOn();
    expect(texts((await run.result).messages)).toEqual(['Go.']);
  });

  test('is cut at 10,000 characters, and no more than 1,000 wait: nothing is unlimited (executor 9)', async () => {
    const { run, watched, goOn } = await inFirstCall([reply('end')]);
    watched.nudge('x'.repeat(10_001));
    for (let i = 0; i < 1_001; i++) watched.nudge(`n${i}`);
    goOn();
    const said = texts((await run.result).messages);
    expect(said).toHaveLength(1_001);
    expect(said[1]).toHaveLength(10_000);
    expect(said.at(-1)).toBe('n998');
  });
});

const six: ScriptedEntry = ({ messages }) => {
  const turns = messages.filter(({ role }) => role === 'assistant').length;
  return turns < 5 ? callTool('look', { turns }) : reply('end');
};

/** One process that works on the run, under a critic that speaks once, after the second step, and remembers that it did. */
async function live(process: MortalProcess) {
  const critic = notingCritic((run) => {
    let hasSpoken = run.saved?.hasSpoken === true;
    return {
      onActivity: ({ type }) => {
        if (type !== 'step' || hasSpoken || run.tallies().iteration < 2) return;
        hasSpoken = true;
        run.nudge('Look closer.');
      },
      state: () => ({ hasSpoken }),
    };
  });
  const { model } = hostOf({ script: Array.from({ length: 9 }, () => six) });
  const host = hostOf({
    models: { fast: process.model(model) },
    tools: [toolOf('look')],
    store: process.store,
    ports: { critic },
  });
  return Promise.race([host.run({ runId: 'r' }), process.died]);
}

test('a nudge is delivered exactly once, and what the critic remembers agrees with it, wherever the process died (supervision 2)', async () => {
  let diesAfter = 1;
  for (; diesAfter < 50; diesAfter++) {
    const process = mortalProcess(undefined, diesAfter);
    const result = (await live(process)) ?? (await live(mortalProcess(await process.left())));
    expect(result, `died after write ${diesAfter}`).toMatchObject({ status: 'ok', iterations: 6 });
    // Of a run that had ended, only the answer is given again.
    const isAnswered = result?.messages.length === 0;
    if (!isAnswered) expect(texts(result?.messages), `died after write ${diesAfter}`).toEqual(['Go.', 'Look closer.']);
    if (!process.isDead) break;
  }
  expect(diesAfter).toBeGreaterThan(9);
  expect(diesAfter).toBeLessThan(50);
  await settle();
});
