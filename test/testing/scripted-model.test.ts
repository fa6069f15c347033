import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import {
  callTool,
  callTools,
  fail,
  hang,
  reply,
  type ScriptedEntry,
  scriptedModel,
  stallAfter,
  testClock,
} from 'pawl/testing';
import { describe, expect, test } from 'vitest';

const ask = (extra: Partial<LanguageModelV4CallOptions> = {}): LanguageModelV4CallOptions => ({ prompt: [], ...extra });

/** The content of one generated and one streamed answer to the same script. */
async function bothWays(entry: ScriptedEntry) {
  const generated = (await scriptedModel([entry]).doGenerate(ask())).content;
  const { stream } = await scriptedModel([entry]).doStream(ask());
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return { generated, parts };
}

describe('a scripted model', () => {
  test('answers with text', async () => {
    const { generated, parts } = await bothWays(reply('done'));
    expect(generated).toEqual([{ type: 'text', text: 'done' }]);
    expect(parts.map(({ type }) => type)).toEqual(['stream-start', 'text-start', 'text-delta', 'text-end', 'finish']);
    expect(parts[2]).toMatchObject({ delta: 'done' });
  });

  test('calls tools, their input as JSON text; ids it makes itself are counted over its life', async () => {
    const model = scriptedModel([
      callTool('a', { n: 1 }),
      callTools([
        { name: 'b', input: {} },
        { name: 'c', input: [null], callId: 'mine' },
        { name: 'd', input: 1 },
      ]),
      callTool('e', {}, 'yours'),
      callTool('f'),
    ]);
    const ids: string[][] = [];
    for (let i = 0; i < 4; i++) {
      const { content, finishReason } = await model.doGenerate(ask());
      expect(finishReason.unified).toBe('tool-calls');
      ids.push(
        content.flatMap((part) =>
          part.type === 'tool-call' ? [`${part.toolCallId} ${part.toolName} ${part.input}`] : [],
        ),
      );
    }
    expect(ids).toEqual([
      ['call-1 a {"n":1}'],
      ['call-2 b {}', 'mine c [null]', 'call-3 d 1'],
      ['yours e {}'],
      ['call-4 f {}'],
    ]);
  });

  test('streams the same calls that it generates', async () => {
    const { generated, parts } = await bothWays(
      callTools([
        { name: 'a', input: 1 },
        { name: 'b', input: 2 },
      ]),
    );
    expect(parts.filter(({ type }) => type === 'tool-call')).toEqual(generated);
  });

  test('reports 10 tokens in and 5 out for each answer', async () => {
    const { usage } = await scriptedModel([reply('x')]).doGenerate(ask());
    expect([usage.inputTokens.total, usage.outputTokens.total]).toEqual([10, 5]);
  });

  test('remembers every request, also those that failed', async () => {
    const model = scriptedModel([fail(Object.assign(new Error('down'), { statusCode: 400 })), reply('x')]);
    const { signal } = new AbortController();
    const user = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] };
    const tool = { type: 'function' as const, name: 't', inputSchema: {} };
    await expect(model.doStream(ask())).rejects.toThrow('down');
    await model.doStream(
      ask({ prompt: [{ role: 'system', content: 'Be kind.' }, user], tools: [tool], abortSignal: signal }),
    );
    expect(model.calls).toEqual([
      { system: '', messages: [], tools: [], signal: undefined },
      { system: 'Be kind.', messages: [user], tools: [tool], signal },
    ]);
  });

  test('fails with any value of its script, null too', async () => {
    for (const error of [new Error('model down'), null, 'text']) {
      await expect(scriptedModel([fail(error)]).doStream(ask())).rejects.toBe(error);
      await expect(scriptedModel([fail(error)]).doGenerate(ask())).rejects.toBe(error);
    }
  });

  test('whose script is over says how many steps it had and which call this is', async () => {
    const model = scriptedModel([reply('x')]);
    await model.doStream(ask());
    await expect(model.doStream(ask())).rejects.toThrow(/has 1 step, and this is call 2/);
    await expect(model.doGenerate(ask())).rejects.toThrow(/has 1 step, and this is call 3/);
  });

  test('that resumes plays the entry of the place in the transcript, and counts its calls from there', async () => {
    const call = (toolCallId: string) => ({ type: 'tool-call' as const, toolCallId, toolName: 't', input: {} });
    const said = { role: 'assistant' as const, content: [call('call-1'), call('call-2')] };
    const script = [callTools([{ name: 't', input: {} }]), callTool('t', {}), reply('done')];
    const another = () => scriptedModel(script, { resumes: true });
    expect((await another().doGenerate(ask({ prompt: [said] }))).content).toMatchObject([{ toolCallId: 'call-3' }]);
    expect((await another().doGenerate(ask({ prompt: [said, said] }))).content).toEqual([
      { type: 'text', text: 'done' },
    ]);
    await expect(another().doGenerate(ask({ prompt: [said, said, said] }))).rejects.toThrow(
      /3 steps, and this is call 4/,
    );
    const one = another();
    await one.doStream(ask({ prompt: [] }));
    expect((await one.doGenerate(ask({ prompt: [] }))).content).toMatchObject([{ toolCallId: 'call-1' }]);
  });

  test('takes steps that look at the request', async () => {
    const echo: ScriptedEntry = async ({ system }) => reply(`asked: ${system}`);
    const { content } = await scriptedModel([echo]).doGenerate(ask({ prompt: [{ role: 'system', content: 'why' }] }));
    expect(content).toEqual([{ type: 'text', text: 'asked: why' }]);
    const broken: ScriptedEntry = () => {
      throw new Error('bad step');
    };
    await expect(scriptedModel([broken]).doStream(ask())).rejects.toThrow('bad step');
  });
});

describe('a scripted model that hangs', () => {
  test('never settles by itself, and rejects with the reason of its signal', async () => {
    for (const method of ['doStream', 'doGenerate'] as const) {
      const controller = new AbortController();
      const call = scriptedModel([hang()])[method](ask({ abortSignal: controller.signal })) as Promise<unknown>;
      let isSettled = false;
      const rejected = call.catch((error: unknown) => {
        isSettled = true;
        return error;
      });
      await testClock().advance(0);
      expect(isSettled).toBe(false);
      const reason = new Error('stop');
      controller.abort(reason);
      expect(await rejected).toBe(reason);
    }
  });

  test('rejects at once when its signal is aborted already', async () => {
    await expect(scriptedModel([hang()]).doStream(ask({ abortSignal: AbortSignal.abort('gone') }))).rejects.toBe(
      'gone',
    );
  });

  test('in the middle of a text has streamed it, and its stream fails on abort', async () => {
    const controller = new AbortController();
    const { stream } = await scriptedModel([stallAfter('half')]).doStream(ask({ abortSignal: controller.signal }));
    const reader = stream.getReader();
    const types = [];
    for (let i = 0; i < 3; i++) types.push((await reader.read()).value?.type);
    expect(types).toEqual(['stream-start', 'text-start', 'text-delta']);
    const next = reader.read();
    controller.abort('stop');
    await expect(next).rejects.toBe('stop');
    const again = scriptedModel([stallAfter('half')]).doGenerate(ask({ abortSignal: controller.signal }));
    await expect(again).rejects.toBe('stop');
  });
});
