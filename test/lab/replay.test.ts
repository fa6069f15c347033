import { defineAgent, defineTool, type Model, type Tool } from 'pawl';
import { replay } from 'pawl/lab';
import { callTool, callTools, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { standInFor } from '../../src/lab/stand-ins.ts';
import { toolOf } from '../fixtures/host.ts';
import { allSame, recordedRun } from './recorded.ts';

/** A desk that looks two orders up and pays one, and how often its tools ran. */
async function desk() {
  const ran: string[] = [];
  const counted = (name: string, effect: 'read' | 'once') =>
    toolOf(name, effect, (input) => {
      ran.push(name);
      return `${name} ${JSON.stringify(input)}`;
    });
  const tools = [counted('look', 'read'), counted('pay', 'once')];
  const script = [
    callTools([
      { name: 'look', input: { id: 1, deep: { a: 1, b: 2 } } },
      { name: 'look', input: { id: 2 } },
    ]),
    callTool('pay', { cents: 7 }),
    reply('Done.'),
  ];
  const recorded = await recordedRun({ script, tools }, { inputs: { tenant: 'x' }, callerId: 'ada' });
  ran.splice(0);
  return { ...recorded, ran, agent: recorded.host.agent };
}

const asking = (...script: Parameters<typeof scriptedModel>[0]) => ({ model: scriptedModel(script) });

test('the baseline of a run equals its record to the byte, runs no tool and asks no model (lab 17)', async () => {
  const { run, agent, ran, host } = await desk();
  expect(await replay(run, { agent })).toStrictEqual({ ...run, ...allSame });
  expect(ran).toStrictEqual([]);
  expect(host.model.calls).toHaveLength(3);
});

test('two replays of a run give the same report, and change nothing of the run (lab 21)', async () => {
  const { run, agent } = await desk();
  const before = structuredClone(run);
  const reports = [await replay(run, { agent }), await replay(run, { agent })];
  expect(JSON.stringify(reports[0])).toBe(JSON.stringify(reports[1]));
  expect(run).toStrictEqual(before);
});

test('a candidate asks the model with the instructions of the agent, and gets the recorded results (lab 17, 18)', async () => {
  const { run, agent, ran } = await desk();
  const { model } = asking(
    // Another order of keys is the same input.
    callTools([
      { name: 'look', input: { deep: { b: 2, a: 1 }, id: 1 } },
      { name: 'pay', input: { cents: 7 } },
    ]),
    reply('Paid.'),
  );
  const report = await replay(run, { agent: { ...agent, instructions: 'Be quick.' }, model });
  expect(model.calls[0]?.system).toBe('Be quick.');
  expect(report).toMatchObject({
    ...{ status: 'ok', output: 'Paid.', same: false, missed: [], drift: [] },
    unused: [{ step: 1, name: 'look', input: { id: 2 } }],
    usage: { inputTokens: 20, outputTokens: 10 },
    difference: {
      step: 1,
      message: 1,
      recorded: run.messages[1] && { role: 'assistant' },
      replayed: { role: 'assistant' },
    },
  });
  expect(report.steps[0]?.calls.map(({ output }) => output)).toStrictEqual([
    run.steps[0]?.calls[0]?.output,
    run.steps[1]?.calls[0]?.output,
  ]);
  expect(report.steps[0]?.model).toBe('scripted/scripted');
  expect(ran).toStrictEqual([]);
});

test('of a candidate that does the same the report is the same: the ids of calls, what a provider keeps with a part, and the order of keys do not count (lab 21)', async () => {
  const { run, agent } = await desk();
  const fresh = (second: { readonly cents: number }) => {
    const made = asking(
      callTools([
        { name: 'look', input: { deep: { b: 2, a: 1 }, id: 1 }, callId: 'fresh-1' },
        { name: 'look', input: { id: 2 }, callId: 'fresh-2' },
      ]),
      callTool('pay', second, 'fresh-3'),
      reply('Done.'),
    );
    const { model } = made;
    const doStream = model.doStream.bind(model);
    model.doStream = async (request) => {
      const { stream, ...rest } = await doStream(request);
      const marking = new TransformStream({
        transform: (part, out) =>
          out.enqueue(
            part.type === 'tool-call'
              ? { ...part, providerMetadata: { fresh: { itemId: `item ${part.toolCallId}` } } }
              : part,
          ),
      });
      return { ...rest, stream: stream.pipeThrough(marking) };
    };
    return made;
  };
  const same = await replay(run, { agent, ...fresh({ cents: 7 }) });
  expect(JSON.stringify(same.messages)).toMatch(/fresh-3.*item fresh-3/);
  expect(same).toMatchObject(allSame);
  const other = await replay(run, { agent, ...fresh({ cents: 8 }) });
  expect(other).toMatchObject({ same: false, difference: { step: 2 }, drift: [{ step: 2, name: 'pay' }] });
});

test('the refusal of a call is the result of no other one (lab 18)', async () => {
  const input = { type: 'object', properties: { n: { type: 'number', maximum: 5 } } } as const;
  const pay = defineTool({ name: 'pay', description: '', input, effect: 'once', execute: ({ n }) => `paid ${n}` });
  const of = (...inputs: number[]) => [...inputs.map((n) => callTool('pay', { n })), reply('Done.')];
  const { run, host } = await recordedRun({ script: of(9, 3, 4), tools: [pay] });
  const outputs = async (...inputs: number[]) => {
    const report = await replay(run, { agent: host.agent, ...asking(...of(...inputs)) });
    return report.steps.flatMap(({ calls }) => calls.map(({ output }) => 'value' in output && output.value));
  };
  const refusal = expect.stringContaining('invalid input for tool "pay"');
  expect(await outputs(9, 2, 4)).toEqual([refusal, 'paid 3', 'paid 4']);
  expect(await outputs(2, 4)).toEqual(['paid 3', 'paid 4']);
});

test('a call with another input gets the next recorded result of its tool, and is reported as drift; each is used once (lab 18)', async () => {
  const { run, agent } = await desk();
  const look = (id: number) => callTool('look', { id });
  const report = await replay(run, { agent, ...asking(look(2), look(9), look(10)) });
  expect(report.drift).toStrictEqual([{ step: 2, name: 'look', input: { id: 9 } }]);
  expect(report.missed).toStrictEqual([{ step: 3, name: 'look', input: { id: 10 } }]);
  expect(report.unused).toStrictEqual([{ step: 2, name: 'pay', input: { cents: 7 } }]);
});

test('with strict tools a call with another input is missed, and the replay ends there with REPLAY_MISS (lab 18, 19)', async () => {
  const { run, agent } = await desk();
  const { model } = asking(callTool('look', { id: 2 }), callTool('look', { id: 9 }), reply('never'));
  const report = await replay(run, { agent, model, tools: 'strict' });
  expect(report).toMatchObject({ status: 'error', error: { code: 'REPLAY_MISS' }, same: false, drift: [] });
  expect(report.missed).toStrictEqual([{ step: 2, name: 'look', input: { id: 9 } }]);
  expect(report.steps).toHaveLength(1);
  expect(model.calls).toHaveLength(2);
});

test('with onMiss error the model reads that there is no recording, and continues (lab 19)', async () => {
  const { run, agent } = await desk();
  const { model } = asking(callTool('look', { id: 9 }), reply('Then not.'));
  const report = await replay(run, { agent, model, tools: 'strict', onMiss: 'error' });
  expect(report).toMatchObject({ status: 'ok', output: 'Then not.', missed: [{ step: 1, name: 'look' }] });
  expect(report.steps[0]?.calls[0]?.output).toMatchObject({
    type: 'error-text',
    value: expect.stringContaining('no result'),
  });
});

test('with onMiss read-live a tool that only reads runs, and one with an effect ends the replay (lab 19, 20)', async () => {
  const { run, agent, ran } = await desk();
  const { model } = asking(callTool('look', { id: 9 }), callTool('pay', { cents: 8 }), reply('never'));
  const report = await replay(run, { agent, model, tools: 'strict', onMiss: 'read-live' });
  expect(ran).toStrictEqual(['look']);
  expect(report.steps[0]?.calls[0]?.output).toStrictEqual({ type: 'text', value: 'look {"id":9}' });
  expect(report).toMatchObject({
    status: 'error',
    error: { code: 'REPLAY_MISS' },
    missed: [{ name: 'look' }, { name: 'pay' }],
  });
});

test('a tool that a replay runs ends at its own time limit, which its model reads (lab 19)', async () => {
  const { run } = await desk();
  const look = toolOf('look', 'read', () => new Promise(() => {}), { timeoutMs: 10 });
  const agent = defineAgent({ id: 'worker', instructions: '', tools: [look, toolOf('pay', 'once')] });
  const { model } = asking(callTool('look', { id: 9 }), reply('Then not.'));
  const report = await replay(run, { agent, model, tools: 'strict', onMiss: 'read-live' });
  const output = { type: 'error-text', value: expect.stringContaining('did not answer within 10 ms') };
  expect(report).toMatchObject({ status: 'ok', output: 'Then not.', steps: [{ calls: [{ output }] }, {}] });
});

test('a double answers in the place of a tool, and the recording answers the others (lab 18)', async () => {
  const { run, agent, ran } = await desk();
  const seen: unknown[] = [];
  const pay = (...given: unknown[]) => {
    seen.push(given);
    return { receipt: 1 };
  };
  const { model } = asking(callTool('look', { id: 2 }), callTool('pay', { cents: 8 }, 'p'), reply('Paid.'));
  const report = await replay(run, { agent, model, tools: { pay } });
  expect(seen).toStrictEqual([[{ cents: 8 }, { id: 'p', name: 'pay' }]]);
  expect(report.steps[1]?.calls[0]).toMatchObject({ effect: 'once', output: { type: 'json', value: { receipt: 1 } } });
  expect(report).toMatchObject({ status: 'ok', missed: [], drift: [], unused: [{ step: 1, name: 'look' }] });
  expect(ran).toStrictEqual([]);
});

test('an agent whose tool takes another input differs where the check refuses the recorded call (lab 16)', async () => {
  const { run, agent } = await desk();
  const strict = { type: 'object', properties: { cents: { type: 'string' } }, required: ['cents'] } as const;
  const [look, pay] = agent.tools as readonly Tool[];
  const changed = {
    ...pay,
    ...toolOf('pay', 'once'),
    input: { jsonSchema: strict, validate: () => ({ ok: false, message: 'cents is no text' }) },
  };
  const report = await replay(run, { agent: { ...agent, tools: [look, changed] as readonly Tool[] } });
  expect(report).toMatchObject({ same: false, unused: [], missed: [], difference: { step: 2, message: 4 } });
  expect(report.difference?.replayed).toMatchObject({ content: [{ output: { type: 'error-text' } }] });
});

test('an agent with fewer steps ends at its limit, where the recorded run continued (lab 17)', async () => {
  const { run, agent } = await desk();
  const report = await replay(run, { agent: { ...agent, maxSteps: 2 } });
  expect(report).toMatchObject({ same: false, status: 'error', error: { code: 'STEP_LIMIT' } });
  expect(report.difference).toMatchObject({ step: 3, message: 5, replayed: null });
});

test('an answer that does not fit the schema of today needs another one, which the recording does not have (lab 17)', async () => {
  const { run, agent } = await desk();
  const output = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } as const;
  const report = await replay(run, { agent: { ...agent, output } });
  expect(report).toMatchObject({
    same: false,
    status: 'error',
    error: { code: 'REPLAY_MISS' },
    difference: { step: 4, message: 6 },
  });
});

test('the replacement tool of a replay has no way to an effect, for any answer (lab 20)', async () => {
  const { run, agent, ran } = await desk();
  for (const onMiss of ['fail', 'error', 'read-live'] as const) {
    for (const tools of ['recorded', 'strict', {}] as const) {
      const { model } = asking(callTool('pay', { cents: 7 }), callTool('pay', { cents: 9 }), reply('x'));
      await replay(run, { agent, model, onMiss, tools });
    }
  }
  expect(ran).toStrictEqual([]);
});

test('a tool of an aborted replay gets the signal, and the replay rejects with the reason (lab 19)', async () => {
  const { run } = await desk();
  const controller = new AbortController();
  const look = toolOf('look', 'read', (_, { signal }) => {
    controller.abort(new Error('enough'));
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve('late')));
  });
  const agent = defineAgent({ id: 'worker', instructions: '', tools: [look, toolOf('pay', 'once')] });
  const { model } = asking(callTool('look', { id: 9 }));
  const options = { agent, model, tools: 'strict', onMiss: 'read-live', signal: controller.signal } as const;
  await expect(replay(run, options)).rejects.toThrow('enough');
  await expect(replay(run, options)).rejects.toThrow('enough');
});

test('wrong options are refused with what is wrong (lab 16)', async () => {
  const { run, agent } = await desk();
  const wrong = async (options: object, message: string, given: unknown = run) =>
    expect(replay(given as never, { agent, ...options })).rejects.toThrow(message);
  await wrong({ onmiss: 'fail' }, 'did you mean onMiss?');
  await wrong({ onMiss: 'live' }, "onMiss must be 'fail'");
  await wrong(
    { tools: { refund: () => 1 } },
    'tools.refund doubles a tool that agent worker does not have; it has look, pay',
  );
  await wrong({ tools: { pay: 'x' } }, 'tools must be');
  await wrong({ agent: {} }, 'agent must be an agent made with defineAgent');
  await wrong({ model: 'gpt' }, 'model must be a language model');
  await wrong({ agent: { ...agent, tools: ['look'] } }, 'give replay the agent with the tool itself');
  await wrong({}, 'as readRun returns it', { runId: 'r' });
});

test('the agent of a replay has no execute of a tool, no agent and no skill that could do anything (lab 20)', async () => {
  const { agent, ran } = await desk();
  const helper = defineAgent({ id: 'helper', description: 'Helps.', instructions: 'Pay.', tools: agent.tools });
  const parts = { agents: [helper], skills: [], doubles: {}, mayRead: true, model: scriptedModel([reply('x')]) };
  const standIn = standInFor({ ...agent, subAgents: ['helper'], skills: ['sum'] }, parts);
  const [look, pay] = standIn.agent.tools as readonly Tool[];
  expect(() => pay?.execute({ cents: 7 }, {} as never)).toThrow('a replay makes no call');
  await look?.execute({ id: 1 }, {} as never);
  expect(ran).toStrictEqual(['look']);
  const [empty] = standIn.agents;
  expect(empty).toMatchObject({ id: 'helper', description: 'Helps.', instructions: '' });
  expect(empty?.tools).toBeUndefined();
  for (const { model } of [...standIn.agents, ...standIn.skills])
    expect(() => (model as Model).doStream({} as never)).toThrow('a replay makes no call');
  const still = standInFor(agent, { ...parts, mayRead: false });
  expect(() => (still.agent.tools as readonly Tool[])[0]?.execute({}, {} as never)).toThrow('a replay makes no call');
});
