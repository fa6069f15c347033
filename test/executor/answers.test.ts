import { type Compactor, createPalette, defineAgent, type ExecutorOptions, memoryStore } from 'pawl';
import { callTool, fail, reply, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf, toolOf } from '../fixtures/host.ts';
import { modelOf, type Part, streamOf, text } from '../model/fake-model.ts';

const usage = { inputTokens: { total: 3 }, outputTokens: { total: 2 } };
/** A whole reply: its parts, and how it ended. */
const ends = (parts: readonly unknown[], unified: string, raw: string = unified) => [
  ...parts,
  { type: 'finish', finishReason: { unified, raw }, usage },
];
const says = (words: string, unified = 'stop', raw?: string) => ends(text(words), unified, raw);
const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{}' };
const thought = [
  { type: 'reasoning-start', id: 'r' },
  { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
];
const thrown = (error: unknown) => ({ error });
type Reply = readonly unknown[] | { readonly error: unknown };

/** A run whose model gives these replies in turn; the last one stays. */
async function asked(replies: readonly Reply[], options: HostOptions = {}) {
  const requests: { role: string; content: unknown }[][] = [];
  const model = modelOf(async ({ prompt }) => {
    requests.push(prompt as never);
    const next = replies[Math.min(requests.length, replies.length) - 1] as Reply;
    if ('error' in next) throw next.error;
    return { stream: streamOf(next as Part[]) };
  });
  const clock = testClock(0);
  const events: { type: string }[] = [];
  const tools = [toolOf('look')];
  const observers = [{ onEvent: (event: { type: string }) => void events.push(event) }];
  const store = memoryStore({ clock });
  const host = hostOf({ clock, tools, store, observers, models: { fast: model }, ...options });
  const run = await host.start({ prompt: 'Go on. '.repeat(20) });
  let isOver = false;
  run.result.finally(() => {
    isOver = true;
  });
  for (let i = 0; i < 40 && !isOver; i++) await clock.advance(1_000);
  const result = await run.result;
  const texts = requests.map((each) => each.map(({ content }) => JSON.stringify(content)).join('\n'));
  return { result, requests, texts, host, events };
}

const nothing: readonly (readonly [title: string, reply: Reply, reason: RegExp])[] = [
  ['a finish reason of error', says('half', 'error'), /finish reason "error"/],
  ['a garbled call', ends([], 'error', 'MALFORMED_FUNCTION_CALL'), /MALFORMED_FUNCTION_CALL/],
  ['an unexpected call, with text', says('I call', 'other', 'UNEXPECTED_TOOL_CALL'), /UNEXPECTED_TOOL_CALL/],
  ['no content, for another reason', ends([], 'other'), /neither text nor calls/],
  ['no content, as if it were complete', ends([], 'stop'), /neither text nor calls/],
  ['no content, as if it called', ends([], 'tool-calls'), /neither text nor calls/],
  ['thoughts alone', ends(thought, 'stop'), /neither text nor calls/],
  ['white space alone', says(' \n\t ', 'stop'), /neither text nor calls/],
  [
    'a call of a tool that the provider ran, and no word',
    ends([{ ...call, providerExecuted: true }], 'stop'),
    /neither/,
  ],
  ['a request to approve a call', [{ type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' }], /approve/],
];

describe('a whole reply that is no answer (edges 6)', () => {
  test.for(nothing)('%s is asked for again', async ([, reply]) => {
    const { result, requests } = await asked([reply, reply, says('Here.')]);
    expect(result).toMatchObject({ status: 'ok', output: 'Here.' });
    expect(requests).toHaveLength(3);
  });

  test.for(nothing)('%s ends the run after modelAttempts, with the reason', async ([, reply, reason]) => {
    const { result, requests } = await asked([reply], { defaults: { modelAttempts: 3 } });
    expect(result).toMatchObject({ status: 'error', output: '', error: { code: 'MODEL' } });
    expect(result.error?.message).toMatch(reason);
    expect(requests).toHaveLength(3);
  });

  test('is asked for modelAttempts times after a wait for the model too, and costs what it cost', async () => {
    const away = thrown({ statusCode: 503 });
    const { result, requests } = await asked([away, ends([], 'stop'), ends([], 'stop'), says('Here.')], {
      defaults: { modelAttempts: 1 },
    });
    expect(result.status).toBe('waiting');
    expect(requests).toHaveLength(1);
    const lost = await asked([ends([], 'stop'), says('Here.')]);
    expect(lost.result.usage).toMatchObject({ inputTokens: 6, outputTokens: 4 });
  });

  test('after a step with calls is asked for with a sentence that no record has', async () => {
    const { result, requests, texts } = await asked([ends([call], 'tool-calls'), ends([], 'stop'), says('Here.')]);
    expect(result.status).toBe('ok');
    expect(requests.map((each) => each.at(-1)?.role)).toEqual(['user', 'tool', 'user']);
    expect(texts[2]).toContain('Give your answer now');
    expect(JSON.stringify(result.messages)).not.toContain('Give your answer now');
  });

  test('at the first turn is asked for as it is', async () => {
    const { requests } = await asked([ends([], 'stop'), says('Here.')]);
    expect(requests[1]).toEqual(requests[0]);
  });

  test('in a bare phase is also a reply of calls alone', async () => {
    const phases = [{ name: 'one', instructions: 'Say.', bare: true }];
    const { result, requests } = await asked([ends([call], 'tool-calls'), says('Said.')], { agent: { phases } });
    expect(result).toMatchObject({ status: 'ok', output: 'Said.' });
    expect(requests).toHaveLength(2);
  });

  test('of a middleware never makes an empty answer', async () => {
    const blank = async () => ({ message: { role: 'assistant' as const, content: [] }, finishReason: 'stop' }) as never;
    const { result } = await asked([says('x')], { middleware: [{ model: blank }] });
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
  });

  test('that reached its length limit before its first word is asked for once more, and its result says so (edges 7)', async () => {
    const { result, requests } = await asked([ends(thought, 'length')]);
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' }, finishReason: 'length' });
    expect(result.error?.message).toContain('length limit before it wrote any text');
    expect(requests).toHaveLength(2);
    expect((await asked([ends([], 'length'), says('Here.')])).result.output).toBe('Here.');
  });

  test.for([
    ['content-filter', 'SAFETY'],
    ['content-filter', 'refusal'],
  ] as const)('that the provider withheld (%s, %s) ends the run at once', async ([unified, raw]) => {
    const { result, requests } = await asked([ends([call], 'tool-calls'), ends([], unified, raw)]);
    expect(result).toMatchObject({ status: 'error', error: { code: 'CONTENT_REFUSED' } });
    expect(result.error?.message).toContain(raw);
    expect(requests).toHaveLength(2);
  });

  test('with a file instead of words is an answer', async () => {
    const file = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQI=' } };
    expect((await asked([ends([file], 'stop')])).result).toMatchObject({ status: 'ok', output: '' });
  });
});

describe('a reply that its provider paused (edges 6)', () => {
  const paused = says('Searching. ', 'stop', 'pause_turn');

  test('goes back as it is, and the turn continues to one message', async () => {
    const { result, requests } = await asked([paused, paused, says('It is 42.')]);
    expect(result).toMatchObject({ status: 'ok', output: 'Searching. Searching. It is 42.', iterations: 1 });
    expect(requests.map((each) => each.map(({ role }) => role).join())).toEqual([
      'system,user',
      'system,user,assistant',
      'system,user,assistant',
    ]);
    expect(result.messages).toHaveLength(2);
    expect(result.usage).toMatchObject({ inputTokens: 9, outputTokens: 6 });
  });

  test('is shown in order, with each part in its place', async () => {
    const { events } = await asked([paused, thrown({ statusCode: 503 }), says('It is 42.')]);
    const shown = events.flatMap((event) => {
      if (event.type === 'step.reset') return ['reset'];
      const { block, text: words } = event as { block?: number; text?: string };
      return event.type === 'model.delta' ? [`${block}: ${words}`] : [];
    });
    expect(shown).toEqual(['0: Searching. ', 'reset', '0: Searching. ', '1: It is 42.']);
  });

  test('continues at most maxSteps times', async () => {
    const { result, requests } = await asked([paused], { agent: { maxSteps: 3 } });
    expect(result).toMatchObject({ status: 'error', error: { code: 'MODEL' } });
    expect(result.error?.message).toContain('paused');
    expect(requests).toHaveLength(4);
  });
});

describe('a conversation that is too long for the model (edges 8)', () => {
  const long = thrown({ statusCode: 400, message: 'prompt is too long: 208310 tokens > 200000 maximum' });
  const shorter: Compactor = async (messages) =>
    messages.slice(-1).map((each) => ({ ...each, content: [{ type: 'text', text: 'In short.' }] }) as never);
  const prompt: Partial<ExecutorOptions> = { compactor: shorter };

  test('is compacted once, and asked again', async () => {
    const { result, requests, texts } = await asked([long, says('Here.')], prompt);
    expect(result).toMatchObject({ status: 'ok', output: 'Here.' });
    expect(requests).toHaveLength(2);
    expect(texts[1]).toContain('In short.');
  });

  test('without a compactor ends with a code of its own', async () => {
    const { result, requests } = await asked([long]);
    expect(result).toMatchObject({ status: 'error', error: { code: 'CONTEXT_TOO_LONG', cause: {} } });
    expect(requests).toHaveLength(1);
  });

  test('ends where the shorter one is too long as well, and where it is no shorter', async () => {
    const { result, requests } = await asked([long], prompt);
    expect([result.error?.code, requests.length]).toEqual(['CONTEXT_TOO_LONG', 2]);
    const same = await asked([long], { compactor: async (messages) => messages });
    expect([same.result.error?.code, same.requests.length]).toEqual(['CONTEXT_TOO_LONG', 1]);
  });

  test('is compacted after a failure that passed too', async () => {
    const { result, requests } = await asked([thrown({ statusCode: 503 }), long, says('Here.')], prompt);
    expect([result.output, requests.length]).toEqual(['Here.', 3]);
  });
});

describe('an answer that reached its length limit (edges 7)', () => {
  const cut = says('The answer is', 'length');

  test('is the answer, unless the agent or the defaults say otherwise', async () => {
    expect((await asked([cut])).result).toMatchObject({ status: 'ok', output: 'The answer is' });
    const { result } = await asked([cut], { agent: { onCutAnswer: 'accept' }, defaults: { onCutAnswer: 'fail' } });
    expect(result.status).toBe('ok');
  });

  test('ends the run with ANSWER_CUT, and its cost', async () => {
    const { result, requests } = await asked([cut], { defaults: { onCutAnswer: 'fail' } });
    expect(result).toMatchObject({ status: 'error', error: { code: 'ANSWER_CUT' }, usage: { inputTokens: 3 } });
    expect(requests).toHaveLength(1);
  });

  test('is continued, at most twice, and its texts are joined', async () => {
    const more = says(' still', 'length');
    const { result, requests } = await asked([cut, more, says(' 42.')], { agent: { onCutAnswer: 'continue' } });
    expect(result).toMatchObject({ status: 'ok', output: 'The answer is still 42.', usage: { inputTokens: 9 } });
    expect(requests).toHaveLength(3);
    expect(requests[1]?.at(-1)?.role).toBe('user');
    expect(JSON.stringify(result.messages)).not.toContain('was cut at its length limit');
    const endless = await asked([cut, more], { agent: { onCutAnswer: 'continue' } });
    expect([endless.result.output, endless.requests.length]).toEqual(['The answer is still still', 3]);
  });

  test('stays as it is where its rest cannot be had', async () => {
    const refused = thrown({ statusCode: 400, message: 'no' });
    const { result } = await asked([cut, refused], { agent: { onCutAnswer: 'continue' } });
    expect(result).toMatchObject({ status: 'ok', output: 'The answer is' });
  });

  test('fits an output schema when its joined text does', async () => {
    const output = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;
    const halves = [says('{"n":', 'length'), says('42}')];
    const { result } = await asked(halves, { agent: { onCutAnswer: 'continue', output } });
    expect(result).toMatchObject({ status: 'ok', data: { n: 42 } });
  });

  test.for([
    ['stop', 'end_turn', 'stop'],
    ['length', 'max_tokens', 'length'],
    ['content-filter', 'SAFETY', 'content-filter'],
    ['content-filter', 'refusal', 'refusal'],
    ['other', 'new', 'other'],
  ] as const)(
    '%s (%s) is said as %s: in the result, in step.done, and in the kept outcome',
    async ([unified, raw, reason]) => {
      const { result, events, host } = await asked([ends([call], 'tool-calls'), says('Half.', unified, raw)]);
      expect(result).toMatchObject({ status: 'ok', finishReason: reason });
      const steps = events.filter(({ type }) => type === 'step.done');
      expect(steps.map((step) => (step as { finishReason?: string }).finishReason)).toEqual([undefined, reason]);
      const again = await host.run({ runId: result.runId, prompt: 'Go on. '.repeat(20) });
      expect(again).toMatchObject({ status: 'ok', finishReason: reason });
    },
  );

  test('is said of a refused and of a failed answer too', async () => {
    const refused = await asked([ends([], 'content-filter', 'refusal')]);
    expect(refused.result).toMatchObject({ error: { code: 'CONTENT_REFUSED' }, finishReason: 'refusal' });
    const failed = await asked([cut], { agent: { onCutAnswer: 'fail' } });
    expect(failed.result).toMatchObject({ error: { code: 'ANSWER_CUT' }, finishReason: 'length' });
  });

  test('is read as cut by the next phase', async () => {
    const phases = [
      { name: 'one', instructions: 'Look.', bare: true },
      { name: 'two', instructions: 'Read: {{.one}}', bare: true },
    ];
    const { result, requests } = await asked([cut, says('Read.')], { agent: { phases } });
    expect(result.phases.map(({ finishReason }) => finishReason)).toEqual(['length', 'stop']);
    expect(JSON.stringify(requests[1]?.[0])).toContain('this answer was cut at the length limit');
    expect(result.phases[0]?.output).toBe('The answer is');
  });

  test('is read as cut by the agent that asked', async () => {
    const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
    const asks = { ...call, toolName: 'agent__helper', input: '{"prompt":"x"}' };
    const { result, texts } = await asked([ends([asks], 'tool-calls'), cut, says('Read.')], {
      agent: { subAgents: ['helper'] },
      ports: { palette: createPalette({ agents: [helper] }) },
      agents: [helper],
    });
    expect(result.status).toBe('ok');
    expect(texts[2]).toContain('this answer was cut at the length limit');
  });

  test('takes three words, and no other', () => {
    expect(() => hostOf({ agent: { onCutAnswer: 'ask' as never } })).toThrow(TypeError);
    expect(() => hostOf({ defaults: { onCutAnswer: 'ask' as never } })).toThrow(TypeError);
  });
});

describe('a failed model call (edges 5)', () => {
  test('tells its HTTP status in model.retry', async () => {
    const { events } = await asked([thrown({ statusCode: 503, message: 'busy' }), says('Here.')]);
    expect(events.find(({ type }) => type === 'model.retry')).toMatchObject({ attempt: 2, status: 503 });
  });

  test.for([
    ['a bug', new TypeError('x is undefined')],
    ['a bug behind a middleware', new Error('x', { cause: new RangeError('y') })],
  ])('%s ends a run without a turn after modelAttempts, and no other run', async ([, bug]) => {
    const options = { defaults: { modelAttempts: 2, modelRetryMs: 5_000 } };
    const first = await asked([thrown(bug)], options);
    expect([first.result.status, first.result.error?.code, first.requests.length]).toEqual(['error', 'MODEL', 2]);
    const later = await asked([ends([call], 'tool-calls'), thrown(bug)], options);
    expect(later.result.status).toBe('waiting');
  });

  test('without a word that Pawl knows makes a run wait, also at its first turn', async () => {
    const { result } = await asked([thrown(new Error('the flux is misaligned'))], { defaults: { modelAttempts: 2 } });
    expect(result.status).toBe('waiting');
  });

  test('a scripted failure is no other', async () => {
    const { run } = hostOf({
      script: [callTool('look'), fail({ statusCode: 400 }), reply('no')],
      tools: [toolOf('look')],
    });
    expect((await run()).error?.code).toBe('MODEL');
  });
});
