import { type Message, memoryStore, type RunCheckpoint, type RunEvent } from 'pawl';
import { callTool, hang, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { createActor } from 'xstate';
import { RunRedaction } from '../../src/executor/host/redaction.ts';
import type { RunEventBody } from '../../src/run/events/body.ts';
import { hostOf, settle, toolOf, until } from '../fixtures/host.ts';
import { afterCrash, watchedStore } from '../fixtures/watched-store.ts';

/** What nobody must see. It holds no other text. */
const SECRET = 'sk-hunter2';
const redact = (text: string) => text.replaceAll(SECRET, '[key]');
const hides = (value: unknown) => expect(JSON.stringify(value) ?? '').not.toContain(SECRET);
const shows = (value: unknown) => expect(JSON.stringify(value)).toContain('[key]');

const echo = toolOf('echo', 'read', async () => ({ key: SECRET, at: [`${SECRET}!`] }));
const prompt = `Use ${SECRET}.`;
const scripted = () => [callTool('echo', { with: `${SECRET} please` }), reply(`I used ${SECRET}\nand ${SECRET}`)];

/** Whether each piece of a block continues at the end of the piece before it. */
function areOffsetsRight(events: readonly RunEventBody[]): boolean {
  const ends = new Map<number, number>();
  return events.every((event) => {
    if (event.type !== 'model.delta') return true;
    const end = ends.get(event.block) ?? 0;
    ends.set(event.block, end + event.text.length);
    return event.offset === end;
  });
}

async function eventsOf(run: { events(): AsyncIterable<RunEvent> }): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run.events()) events.push(event);
  return events;
}

describe('redact (recovery 11)', () => {
  test('reaches records: prompt, inputs, messages, calls and results, the kept outcome; the result has all of it', async () => {
    const inner = memoryStore();
    const store = watchedStore({}, inner);
    const host = hostOf({ script: scripted(), tools: [echo], store, redact });
    const result = await host.run({ runId: 'r', prompt, inputs: { token: SECRET } });
    for (const { method, args } of store.log) if (method !== 'load') hides(args);
    shows(store.log.filter(({ method }) => method === 'save'));
    shows(store.log.filter(({ method }) => method === 'append'));
    shows(await store.outcomes.find('r'));
    expect(result.output).toContain(SECRET);
    expect(JSON.stringify(host.model.calls[1]?.messages)).toContain(`"key":"${SECRET}"`);
  });

  test('reaches events, streamed text included although it comes in pieces', async () => {
    const host = hostOf({ script: scripted(), tools: [echo], redact });
    const run = await host.start({ prompt });
    const events = await eventsOf(run);
    hides(events);
    const said = events.flatMap((event) => (event.type === 'model.delta' ? [event.text] : [])).join('');
    expect(said).toBe('I used [key]\nand [key]');
    for (const type of ['tool.started', 'tool.done', 'run.ended'] as const) {
      shows(events.find((event) => event.type === type));
    }
  });

  test('sees a secret in a stream however it is cut into pieces; nothing of the text is lost, and long lines do not pile up', () => {
    const text = `one ${SECRET} two\n${SECRET}${' xxx'.repeat(1_200)} ${SECRET}${'y'.repeat(4_200)}\n\nend ${SECRET}`;
    for (let size = 1; size < 12; size++) {
      const run = new RunRedaction(redact);
      const shown: RunEventBody[] = [];
      let held = 0;
      for (let at = 0; at < text.length; at += size) {
        const piece = text.slice(at, at + size);
        const events = run.events({ type: 'model.delta', step: 1, block: 0, offset: at, kind: 'text', text: piece });
        held = events.length > 0 ? 0 : held + piece.length;
        expect(held).toBeLessThan(4_200);
        shown.push(...events, ...run.events({ type: 'checkpoint.saved', iteration: 1, ms: 0 }));
      }
      shown.push(...run.events({ type: 'run.status', state: 'completing' }));
      hides(shown);
      const said = shown.flatMap((event) => (event.type === 'model.delta' ? [event.text] : []));
      expect(said.join('')).toBe(redact(text));
      expect(areOffsetsRight(shown)).toBe(true);
      expect(shown.at(-1)).toEqual({ type: 'run.status', state: 'completing' });
    }
  });

  test('keeps the blocks of a stream apart, in the order in which they came', () => {
    const run = new RunRedaction(redact);
    const say = (block: number, text: string) =>
      run.events({ type: 'model.delta', step: 1, block, offset: 0, kind: block === 0 ? 'reasoning' : 'text', text });
    const shown = [
      ...say(0, 'hm sk-hun'),
      ...say(0, 'ter2 '),
      ...run.endText(1),
      ...say(1, 'so\nand sk-'),
      ...say(1, 'hunter2'),
      ...run.endText(1),
      ...run.endText(1),
      ...say(2, 'held'),
      ...run.events({ type: 'step.started', step: 2 }),
    ];
    hides(shown);
    expect(
      shown.map((event) => ('kind' in event && 'text' in event ? `${event.kind}: ${event.text}` : event.type)),
    ).toEqual(['reasoning: hm [key] ', 'text: so\n', 'text: and [key]', 'text: held', 'step.started']);
    expect(areOffsetsRight(shown)).toBe(true);
  });

  test('counts offsets in what readers get, from 0 again after step.reset', () => {
    const run = new RunRedaction(redact);
    const say = (text: string) => run.events({ type: 'model.delta', step: 1, block: 0, offset: 0, kind: 'text', text });
    const shown = [
      ...say(`${SECRET}\n`),
      ...say('b\nc'),
      ...run.events({ type: 'step.reset', step: 1 }),
      ...say('again\n'),
      ...run.endText(0),
    ];
    expect(shown).toMatchObject([
      { offset: 0, text: '[key]\n' },
      { offset: 6, text: 'b\n' },
      { offset: 8, text: 'c' },
      { type: 'step.reset' },
      { offset: 0, text: 'again\n' },
    ]);
  });

  test('shows only the beginning of the arguments of a call: in JSON text a secret may have another spelling', () => {
    const run = new RunRedaction(redact);
    const input = { type: 'tool.input', step: 1, block: 0, callId: 'c', name: 'echo' } as const;
    const pieces = ['{"key":"sk-', '\\u0068unter2"}'];
    const shown = pieces.flatMap((text, i) => run.events({ ...input, offset: i * 11, text }));
    expect(shown).toEqual([{ ...input, offset: 0, text: '' }]);
  });

  test('reaches the log: messages of errors and of their causes', async () => {
    const failing = watchedStore({
      before: ({ method }) => {
        if (method === 'append') throw new Error(`no ${SECRET}`, { cause: new Error(SECRET) });
      },
    });
    const host = hostOf({ script: scripted(), tools: [echo], store: failing, redact });
    const run = await host.start({ runId: 'r', prompt });
    await until(() => host.warned.length > 0);
    hides(host.warned);
    shows(host.warned);
    expect(host.warned[0]?.fields.runId).toBe('r');
    await run.cancel();
  });

  test('reaches inspectors, those of single runs too', async () => {
    const frames: string[] = [];
    const inspect = ({ actorRef: _, rootId: __, ...frame }: { actorRef?: unknown; rootId?: unknown }) => {
      frames.push(JSON.stringify(frame));
    };
    const host = hostOf({ script: scripted(), tools: [echo], redact, inspect: inspect as never });
    await host.run({ prompt, inputs: { token: SECRET } }, { inspect: inspect as never });
    expect(frames.length).toBeGreaterThan(20);
    hides(frames);
    shows(frames);
  });

  test('reaches the audit', async () => {
    const told: unknown[] = [];
    const note = (...args: unknown[]) => void told.push(args);
    const audit = {
      startRun: (info: unknown) => {
        told.push(info);
        return { onStep: note, onTool: note, onPhase: note, logEvent: note, close: note };
      },
    };
    const host = hostOf({ script: scripted(), tools: [echo], redact, ports: { audit } });
    await host.run({ prompt, inputs: { token: SECRET } });
    await settle();
    hides(told);
    shows(told);
  });

  test('leaves ids, names and numbers alone: after any change, a run continues with its record', async () => {
    const store = memoryStore();
    const host = hostOf({
      script: [callTool('echo', { n: 1 }), hang()],
      tools: [echo],
      store,
      redact: () => 'x',
    });
    await host.start({ runId: 'r', prompt, callerId: 'caller' });
    await until(() => host.model.calls.length === 2);
    const record = (await store.load('r')) as RunCheckpoint;
    expect(record.meta).toMatchObject({ runId: 'r', callerId: 'caller', prompt: 'x', agentId: 'worker' });
    expect(record.messages[1]).toMatchObject({
      content: [{ toolCallId: 'call-1', toolName: 'echo', input: { n: 1 } }],
    });
    const next = hostOf({
      script: [reply('end')],
      tools: [echo],
      store: await afterCrash(store),
      redact: () => 'x',
    });
    expect(await next.run({ runId: 'r', prompt, callerId: 'caller' })).toMatchObject({ status: 'ok', output: 'end' });
  });

  test('a resumed run sees the redacted texts, is the same run for who starts it again, and appends to its record', async () => {
    const store = memoryStore();
    const first = hostOf({
      script: [callTool('echo', { k: SECRET }), hang()],
      tools: [echo],
      store,
      redact,
    });
    await first.start({ runId: 'r', prompt });
    await until(() => first.model.calls.length === 2);
    const left = watchedStore({}, await afterCrash(store));
    const next = hostOf({
      script: [callTool('echo', { k: SECRET }, 'c2'), hang()],
      tools: [echo],
      store: left,
      redact,
    });
    await next.start({ runId: 'r', prompt });
    await until(() => next.model.calls.length === 2);
    hides(next.model.calls[0]?.messages);
    expect(left.methods).not.toContain('save');
    expect(left.methods).toContain('append');
    hides(await left.load('r'));
    expect((await left.load('r'))?.messages.length).toBe(5);
  });

  test('a call whose input was redacted is not made again with what is left of it, and its model reads why', async () => {
    const store = memoryStore();
    const begun: unknown[] = [];
    const stuck = toolOf('put', 'idempotent', (input) => {
      begun.push(input);
      return new Promise(() => {});
    });
    const first = hostOf({ script: [callTool('put', { k: SECRET })], tools: [stuck], store, redact });
    await first.start({ runId: 'r', prompt });
    await until(() => begun.length === 1);
    expect(begun).toEqual([{ k: SECRET }]);
    const next = hostOf({ script: [reply('end')], tools: [stuck], store: await afterCrash(store), redact });
    expect(await next.run({ runId: 'r', prompt })).toMatchObject({ status: 'ok' });
    expect(begun).toHaveLength(1);
    expect(JSON.stringify(next.model.calls[0]?.messages)).toContain('they were redacted');
  });

  test('reaches the phases of a pipeline, which continues with what was recorded', async () => {
    const inner = memoryStore();
    const store = watchedStore({}, inner);
    const agent = {
      phases: [
        { name: 'a', instructions: 'A' },
        { name: 'b', instructions: 'B {{.a}}' },
        { name: 'c', instructions: 'C {{.b}}' },
      ],
    };
    const first = [callTool('echo'), reply(`a ${SECRET}`), callTool('echo'), hang()];
    const host = hostOf({ script: first, tools: [echo], agent, store, redact });
    await host.start({ runId: 'r', prompt });
    await until(() => host.model.calls.length === 4);
    expect(host.model.calls[2]?.system).toBe(`B a ${SECRET}`);
    for (const { method, args } of store.log) if (method !== 'load') hides(args);
    const next = hostOf({
      script: [reply(`b ${SECRET}`), reply('c')],
      tools: [echo],
      agent,
      store: await afterCrash(inner),
      redact,
    });
    const result = await next.run({ runId: 'r', prompt });
    expect(result).toMatchObject({ status: 'ok', output: 'c', iterations: 5 });
    expect(result.phases.map(({ output }) => output)).toEqual(['a [key]', `b ${SECRET}`, 'c']);
    expect(next.model.calls.map(({ system }) => system)).toEqual(['B a [key]', `C b ${SECRET}`]);
  });

  test('reaches the snapshots of a host whose machine runs it', async () => {
    const host = hostOf({ script: [callTool('echo', { k: SECRET }), hang()], tools: [echo], redact });
    const actor = createActor(host.executor.logic(host.agent), { input: { prompt, runId: 'r' } }).start();
    await until(() => host.model.calls.length === 2);
    hides(actor.getPersistedSnapshot());
    shows(actor.getPersistedSnapshot());
    actor.stop();
  });

  test('looks at each text once: what a step costs does not grow with the run', async () => {
    const counts: number[] = [];
    let calls = 0;
    const counting = (text: string) => {
      calls += 1;
      return text.replaceAll(SECRET, '[key]');
    };
    const script = [
      ...Array.from({ length: 40 }, (_, i) => () => {
        counts.push(calls);
        return callTool('echo', { i });
      }),
      reply('end'),
    ];
    const agent = { maxSteps: 50 };
    await hostOf({ script, tools: [echo], agent, store: memoryStore(), redact: counting }).run({ prompt });
    const steps = counts.slice(1).map((count, i) => count - (counts[i] ?? 0));
    expect(Math.max(...steps.slice(20))).toBeLessThanOrEqual(Math.max(...steps.slice(1, 10)));
  });

  test.for([
    [
      'throws',
      () => {
        throw new Error(SECRET);
      },
    ],
    ['gives no text', () => undefined as never],
    [
      'gives a promise that rejects',
      (async () => {
        throw new Error(SECRET);
      }) as never,
    ],
  ] as const satisfies readonly (readonly [string, () => string])[])(
    'one that %s gives no text away: a mark replaces it, and the run continues',
    async ([, broken]) => {
      const inner = watchedStore();
      const host = hostOf({ script: scripted(), tools: [echo], store: inner, redact: broken });
      const run = await host.start({ runId: 'r', prompt });
      const events = await eventsOf(run);
      expect(await run.result).toMatchObject({ status: 'ok' });
      hides([events, inner.log, host.warned]);
      expect(JSON.stringify(inner.log)).toContain('[redaction failed]');
    },
  );

  test('what was signed by its provider loses the signature together with its text', async () => {
    const { Redactor } = await import('../../src/values/redact.ts');
    const signed = (text: string) => ({ type: 'reasoning' as const, text, providerOptions: { a: { signature: 'S' } } });
    const message: Message = { role: 'assistant', content: [signed('plain'), signed(SECRET)] };
    const redactor = new Redactor(redact, 'record');
    expect(redactor.message(message).content).toEqual([signed('plain'), { type: 'reasoning', text: '[key]' }]);
    const clean: Message = { role: 'assistant', content: [signed('plain')] };
    expect(redactor.message(clean)).toBe(clean);
  });

  test('must be a function: a wrong one is refused before any run', () => {
    for (const wrong of [/sk-\w+/g, ['sk-'], 'sk-', true]) {
      expect(() => hostOf({ redact: wrong as never })).toThrow(/redact must be a function, not /);
    }
  });

  test('says where a text goes', async () => {
    const places = new Set<string>();
    const host = hostOf({
      script: scripted(),
      tools: [echo],
      store: memoryStore(),
      inspect: () => {},
      redact: (text, { where }) => {
        places.add(where);
        return text;
      },
    });
    await host.run({ prompt });
    expect(places).toEqual(new Set(['record', 'event', 'frame']));
  });
});
