import { APICallError } from '@ai-sdk/provider';
import { ask, defineTool, defineWorkflow, type FinishReason, type JournalEvent, step, type Tool } from 'pawl';
import { callTool, callTools, fail, hang, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { takeWords } from '../../../src/studio/page/frame/words.ts';
import { emptyTimeline, shortenedInput, type Timeline, workedMs } from '../../../src/studio/page/run/timeline.ts';
import { type OwnerMark, ownerWords } from '../../../src/studio/page/run/timeline-marks.ts';
import { folded } from '../../../src/studio/page/run/timeline-model.ts';
import { pageWords } from '../../../src/studio/page-words.ts';
import { world } from './streams.ts';

takeWords(
  pageWords(
    { journal: true, waits: true, commands: true, history: true, threads: true },
    { write: true, apply: false },
  ),
);

const toolOf = (name: string, effect: 'read' | 'idempotent' | 'once', execute: Tool['execute'], more = {}) =>
  defineTool({ name, description: 'Works.', input: { type: 'object' }, effect, execute, ...more });
const never = () => new Promise<string>(() => {});
const timelineOf = (events: readonly JournalEvent[]) => folded(emptyTimeline, events);
const ownerMarks = ({ marks }: Timeline) => marks.filter((mark): mark is OwnerMark => mark.kind === 'owner');
const callsOf = ({ steps }: Timeline) =>
  steps.flatMap(({ calls }) => calls.map(({ name, state, attempts }) => `${name} ${state} ${attempts}`));

test('a timeline has a step for each model turn and a call for each of its calls, with their bars on one axis (studio 3)', async () => {
  const { begin, clock, events } = world();
  const slow = toolOf('look', 'read', () => new Promise((resolve) => clock.setTimeout(() => resolve('seen'), 400)));
  const note = toolOf('note', 'idempotent', () => 'noted');
  const model = [
    async () => {
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 1_000));
      return callTools([
        { name: 'look', input: { file: 'a.ts' } },
        { name: 'note', input: {} },
      ]);
    },
    reply('Well.'),
  ];
  const { executor, agent } = begin(model, [slow, note]);
  await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(5_000);
  const timeline = timelineOf(await events('r'));
  expect(timeline.steps).toMatchObject([
    {
      step: 1,
      from: 0,
      ms: 1_000,
      isDone: true,
      tokens: { input: 10, cached: 0, output: 5 },
      calls: [
        { name: 'look', effect: 'read', words: 'a.ts', state: 'done', from: 1_000, end: { ms: 400 } },
        { name: 'note', effect: 'idempotent', words: '', state: 'done', attempts: 1, from: 1_000 },
      ],
    },
    { step: 2, from: 1_400, ms: 0, words: 'Well.', calls: [], tokens: { input: 10, output: 5 } },
  ]);
  expect(workedMs(timeline)).toBe(1_400);
  expect(timeline.marks).toMatchObject([{ kind: 'ended', status: 'ok', step: 3 }]);
});

test('a step says how its answer ended, where that was not by itself (edges 7)', async () => {
  const { begin, clock, events } = world();
  const { executor, agent } = begin([callTool('look'), reply('We')], [toolOf('look', 'read', () => 'seen')]);
  await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(5_000);
  const story = await events('r');
  const endings = (finishReason: FinishReason) => {
    const ended = (event: JournalEvent) =>
      event.type === 'step.done' && event.finishReason ? { ...event, finishReason } : event;
    return timelineOf(story.map(ended)).steps.map(({ ending }) => ending);
  };
  expect(endings('stop')).toEqual([undefined, undefined]);
  expect(endings('length')).toEqual([undefined, 'cut at its length limit']);
  expect(endings('content-filter')).toEqual([undefined, 'the provider withheld its rest']);
});

test('a step says which models of a list failed when it was asked last, why, and which one answered (failover 12)', async () => {
  const { begin, clock, events } = world();
  const away = (status: number) =>
    fail(new APICallError({ message: 'no', url: '', requestBodyValues: {}, statusCode: status }));
  const named = (name: string, script: readonly ScriptedEntry[]) => {
    const [provider = '', modelId = ''] = name.split('/');
    return Object.assign(scriptedModel(script), { provider, modelId });
  };
  const broken = fail(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }));
  const opus = { model: named('anthropic/opus', [away(529), away(529)]), maxAttempts: 1 };
  const gpt = named('openai/gpt', [away(401), away(403)]);
  const pro = { model: named('google/pro', [broken, reply('Well.')]), maxAttempts: 1 };
  const { executor, agent } = begin([], [], { executor: { models: { fast: [opus, gpt, pro] } } });
  await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(10);
  const passed = async () => timelineOf(await events('r')).steps.map((step) => [step.passed, step.words]);
  expect(await passed()).toEqual([['anthropic/opus: 529 → openai/gpt: 401 → google/pro', '']]);
  // After the wait the list is asked again.
  await clock.advance(60_000);
  expect(await passed()).toEqual([['anthropic/opus: 529 → openai/gpt: 403 → google/pro', 'Well.']]);
});

test('events in any pieces give the same timeline (studio 3)', async () => {
  const { begin, clock, events } = world();
  const { executor, agent } = begin(
    [callTool('look'), callTool('look'), reply('Well.')],
    [toolOf('look', 'read', () => 'seen')],
  );
  await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(100);
  const all = await events('r');
  const one = all.reduce((before, event) => folded(before, [event]), emptyTimeline);
  expect(one).toEqual(timelineOf(all));
  const before = timelineOf(all.slice(0, 4));
  const copy = structuredClone(before);
  folded(before, all.slice(4));
  expect(before).toEqual(copy);
});

test('events that begin inside a step give the steps after it, as they are in the whole (studio 3, 33)', async () => {
  const { begin, clock, events } = world();
  const look = toolOf('look', 'read', () => new Promise((resolve) => clock.setTimeout(() => resolve('seen'), 400)));
  const script = Array.from({ length: 5 }, (_, at) => callTool('look', { at }));
  const { executor, agent } = begin([...script, reply('Well.')], [look]);
  await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(5_000);
  const all = await events('r');
  const whole = timelineOf(all);
  expect(whole.begins).toBeUndefined();
  const inStep = all.findIndex((event) => event.type === 'tool.done' && event.step === 2);
  const cut = timelineOf(all.slice(inStep));
  expect(cut.begins).toBe('after');
  const untimed = ({ steps }: Timeline) =>
    steps.map(({ from: _, calls, ...step }) => ({ ...step, calls: calls.map(({ from: __, ...call }) => call) }));
  expect(untimed(cut)).toEqual(untimed(whole).slice(2));
  const shift = (whole.steps[2]?.from ?? 0) - (cut.steps[0]?.from ?? 0);
  expect(shift).toBeGreaterThan(0);
  expect(cut.steps.map(({ from }) => from + shift)).toEqual(whole.steps.slice(2).map(({ from }) => from));
  expect(cut.marks).toEqual(whole.marks);
});

test('a timeline with too many steps loses the oldest ones and their marks, and counts on as before (studio 20, 33)', () => {
  const stepOf = (step: number) => ({ step, from: step, words: '', calls: [], isDone: true, retries: 0 });
  const markOf = (step: number) => ({ kind: 'unparked', by: '', at: 0, step, isInside: false }) as const;
  const numbers = Array.from({ length: 601 }, (_, at) => at + 1);
  const timeline = { ...emptyTimeline, steps: numbers.map(stepOf), marks: [1, 300, 600].map(markOf), idle: 7 };
  expect(shortenedInput({ ...timeline, steps: timeline.steps.slice(1) }, 600, 300).steps).toHaveLength(600);
  const short = shortenedInput(timeline, 600, 300);
  expect(short.steps.map(({ step }) => step)).toEqual(numbers.slice(-300));
  expect(short).toMatchObject({ marks: [{ step: 600 }], idle: 7 });
});

describe('a change of owner', () => {
  const rows = async (isDying: () => void | Promise<void> = () => {}) => {
    const { begin, clock, events } = world();
    let isFirst = true;
    const work = () => (isFirst ? never() : 'done');
    const tools = [
      toolOf('look', 'read', () => 'seen'),
      toolOf('note', 'idempotent', work),
      toolOf('pay', 'once', work),
      toolOf('file', 'idempotent', () => 'filed'),
    ];
    const dying = begin(
      [callTool('look'), callTools(['file', 'note', 'pay'].map((name) => ({ name, input: {} })))],
      tools,
    );
    await dying.executor.start(dying.agent, { runId: 'r', prompt: 'Pay.' });
    await clock.advance(2_000);
    const before = timelineOf(await events('r'));
    dying.kill();
    await isDying();
    isFirst = false;
    await clock.advance(60_000);
    await begin([reply('Paid?')], tools).executor.recover();
    await clock.advance(1_000);
    return { before, after: timelineOf(await events('r')) };
  };

  test('says what ran again and why, what was not repeated, and which outcomes are unknown (studio 4)', async () => {
    const { before, after } = await rows();
    expect(callsOf(before)).toEqual(['look done 0', 'file done 1', 'note started 1', 'pay started 1']);
    expect(callsOf(after)).toEqual(['look done 0', 'file done 1', 'note done 2', 'pay unknown 1']);
    const [mark] = ownerMarks(after);
    expect(mark).toMatchObject({
      why: 'died',
      step: 2,
      isInside: true,
      repeated: 0,
      again: [{ name: 'note', effect: 'idempotent' }],
      unknown: ['pay'],
    });
    expect(ownerWords(mark as OwnerMark, '62.0 s').join('')).toMatch(
      /^Owner died\. process \d+ on this machine ended in the middle of a call; nothing worked for 62\.0 s\. process \d+ on this machine continues from the record\. 0 recorded calls repeated; 1 idempotent call ran again, with its key; the outcome of pay is unknown, and it is not repeated\.$/,
    );
  });

  test('takes no width: the axis has working time alone (studio 3, 4)', async () => {
    const { after } = await rows();
    const [mark] = ownerMarks(after);
    expect(mark?.ms).toBe(62_000);
    expect(after.now - after.begin).toBe(62_000);
    expect(workedMs(after)).toBe(0);
    expect(after.waited).toBe(0);
  });

  test('says that a process left, and died where it said nothing (studio 4)', async () => {
    const { begin, clock, events } = world();
    const leaving = begin([callTool('look'), hang()], [toolOf('look', 'read', () => 'seen')]);
    await leaving.executor.start(leaving.agent, { runId: 'r', prompt: 'Look.' });
    await clock.advance(2_000);
    await leaving.executor.shutdown();
    expect(timelineOf(await events('r')).rest).toMatchObject({ isLeft: true });
    await clock.advance(60_000);
    const dying = begin([hang()]);
    await dying.executor.recover();
    await clock.advance(1_000);
    dying.kill();
    await clock.advance(60_000);
    const sliced = begin([hang()]);
    const driving = sliced.executor.drive('r', { budgetMs: 1_000, graceMs: 1_000 });
    await clock.advance(5_000);
    await driving;
    await begin([reply('Well.')]).executor.recover();
    await clock.advance(1_000);
    const marks = ownerMarks(timelineOf(await events('r')));
    expect(
      marks.map((mark) =>
        ownerWords(mark, '1 m')
          .join('')
          .split(';')[0]
          ?.replace(/process \d+ on this machine/, 'it'),
      ),
    ).toEqual(['Owner left. it left', 'Owner died. it died', 'New owner. it used up its slice, or died']);
    // Without the events before it, nothing is said of what became of the owner.
    const all = await events('r');
    const part = timelineOf(all.slice(all.findIndex(({ type }) => type === 'run.resumed')));
    expect(ownerWords(ownerMarks(part)[0] as OwnerMark, '1 m').join('')).toMatch(
      /^New owner\. process \d+ on this machine continues from the record; what was before is in earlier events\.$/,
    );
    // Where it left is known: between two turns it may have lost an answer of the model, and no call.
    expect(marks[0]).toMatchObject({ ms: 60_000, cut: [], unknown: [] });
  });

  test('of a run that was retried says so, by whom, and counts the time between as no work (studio 4)', async () => {
    const { begin, clock, events } = world();
    const failing = begin([fail(Object.assign(new Error('no key'), { statusCode: 400 }))]);
    await failing.executor.start(failing.agent, { runId: 'r', prompt: 'Look.' });
    await clock.advance(1_000);
    const open = await events('r');
    await clock.advance(60_000);
    await begin([reply('Well.')]).executor.retry('r', { by: { id: 'ada', name: 'Ada' } });
    await clock.advance(1_000);
    const all = await events('r');
    const timeline = timelineOf(all);
    const [mark] = ownerMarks(timeline);
    expect(ownerWords(mark as OwnerMark, '61.0 s').join('')).toMatch(
      /^Retried by Ada\. process \d+ on this machine continues from the record\.$/,
    );
    expect(mark?.ms).toBe(61_000);
    expect(workedMs(timeline)).toBe(0);
    // A page that was open has the end, and gets what came after it.
    const { cursor } = open.at(-1) as JournalEvent;
    const later = all.slice(all.findIndex(({ type }) => type === 'run.retried'));
    expect(cursor).toMatch(/-end$/);
    const kinds = folded(timelineOf(open), later).marks.map(({ kind }) => kind);
    expect(kinds).toEqual(timeline.marks.map(({ kind }) => kind));
    expect(kinds).toEqual(['ended', 'owner', 'ended']);
  });

  test('between two turns says that a turn under way is asked again (studio 4)', async () => {
    const { begin, clock, events } = world();
    const tools = [toolOf('look', 'read', () => 'seen')];
    const dying = begin([callTool('look'), hang()], tools);
    await dying.executor.start(dying.agent, { runId: 'r', prompt: 'Look.' });
    await clock.advance(2_000);
    expect(timelineOf(await events('r')).steps.map(({ step, isDone }) => [step, isDone])).toEqual([
      [1, true],
      [2, false],
    ]);
    dying.kill();
    await clock.advance(60_000);
    const busy = Object.assign(new Error('busy'), { statusCode: 503, isRetryable: true });
    await begin([fail(busy), reply('Well.')], tools).executor.recover();
    await clock.advance(10);
    const asked = timelineOf(await events('r'));
    expect(asked.steps.at(-1)).toMatchObject({ step: 2, retries: 1, isDone: false });
    expect(ownerMarks(asked)).toMatchObject([{ why: 'died', isTurnAgain: true, step: 2, isInside: false }]);
    await clock.advance(10_000);
    expect(timelineOf(await events('r')).steps.map(({ step, words }) => [step, words])).toEqual([
      [1, ''],
      [2, 'Well.'],
    ]);
  });
});

test('a wait asks, takes no width, and is answered by a person whom its call names (studio 3, 6)', async () => {
  const { begin, clock, events } = world();
  const pay = toolOf('pay', 'once', () => 'paid', { needsApproval: true });
  const asking = begin([callTool('pay', { amount: 7 })], [pay]);
  await asking.executor.start(asking.agent, { runId: 'r', prompt: 'Pay.' });
  await clock.advance(1_000);
  const waiting = timelineOf(await events('r'));
  const [wait] = await asking.executor.waiting();
  expect(waiting.steps[0]?.calls).toMatchObject([
    { name: 'pay', state: 'asks', words: '{ amount: 7 }', starts: [], wait: { kind: 'approval', id: wait?.id } },
  ]);
  expect(waiting.rest).toMatchObject({ isWait: true });
  await clock.advance(250_000);
  await asking.executor.control('r').approve(wait?.id ?? '', { by: { id: 'ada', name: 'Ada' } });
  await begin([reply('Paid.')], [pay]).executor.recover();
  await clock.advance(1_000);
  const after = timelineOf(await events('r'));
  expect(after.steps[0]?.calls).toMatchObject([
    { state: 'done', attempts: 1, wait: { end: { how: 'approve', by: 'Ada' } } },
  ]);
  expect(ownerMarks(after)).toMatchObject([{ why: 'waited', repeated: 0, cut: [], unknown: [] }]);
  expect(after.waited).toBeCloseTo(251_000);
  expect(workedMs(after)).toBe(0);
  expect(after.rest).toBeUndefined();
});

describe('a call that was refused has a result, and no start (studio 3, 6)', () => {
  for (const effect of ['read', 'idempotent', 'once'] as const) {
    test(`denied by a person: ${effect}`, async () => {
      const { begin, clock, events } = world();
      const pay = toolOf('pay', effect, () => 'paid', { needsApproval: true });
      const { executor, agent } = begin([callTool('pay'), reply('Not paid.')], [pay]);
      await executor.start(agent, { runId: 'r', prompt: 'Pay.' });
      await clock.advance(1_000);
      const [wait] = await executor.waiting();
      await executor.control('r').deny(wait?.id ?? '', { by: { id: 'ada' } });
      await clock.advance(5_000);
      const { steps } = timelineOf(await events('r'));
      expect(steps[0]?.calls).toMatchObject([
        { state: 'failed', isRefused: true, starts: [], attempts: 0, wait: { end: { how: 'deny', by: 'ada' } } },
      ]);
    });
  }

  test('denied by a rule; another call of the turn has its start', async () => {
    const { begin, clock, events } = world();
    const tools = [toolOf('pay', 'once', () => 'paid', { needsApproval: true }), toolOf('note', 'once', () => 'noted')];
    const calls = callTools([
      { name: 'pay', input: {} },
      { name: 'note', input: {} },
    ]);
    const approvals = ({ name }: { readonly name: string }) => (name === 'pay' ? { deny: 'not now' } : 'run');
    const { executor, agent } = begin([calls, reply('Not paid.')], tools, { executor: { approvals } });
    await executor.start(agent, { runId: 'r', prompt: 'Pay.' });
    await clock.advance(1_000);
    expect(timelineOf(await events('r')).steps[0]?.calls).toMatchObject([
      { state: 'failed', isRefused: true, starts: [], attempts: 0 },
      { state: 'done', attempts: 1, starts: [{}] },
    ]);
    expect(timelineOf(await events('r')).steps[0]?.calls[1]).not.toHaveProperty('isRefused');
  });
});

test('a run that was admitted for later has no owner before its first one (studio 4)', async () => {
  const { begin, clock, events } = world();
  const admitting = begin([]);
  await admitting.executor.start(admitting.agent, { runId: 'r', prompt: 'Later.' }, { drive: 'later' });
  await clock.advance(60_000);
  await begin([reply('Well.')]).executor.recover();
  await clock.advance(1_000);
  const timeline = timelineOf(await events('r'));
  expect(ownerMarks(timeline)).toEqual([]);
  expect(timeline).toMatchObject({ isOver: true, resumes: 0 });
  expect(timeline.begins).toBeUndefined();
});

test('a vote, and an answer that the run refused, are marks of the timeline (studio 3)', async () => {
  const { begin, clock, events } = world();
  const pay = toolOf('pay', 'once', () => 'paid', { approval: { quorum: 2 }, needsApproval: true });
  const { executor, agent } = begin([callTool('pay'), reply('Paid.')], [pay]);
  await executor.start(agent, { runId: 'r', prompt: 'Pay.' });
  await clock.advance(1_000);
  const [wait] = await executor.waiting();
  await executor.control('r').approve(wait?.id ?? '', { by: { id: 'ada', name: 'Ada' }, note: 'I rang.' });
  await clock.advance(5_000);
  const vote = { kind: 'vote', votes: 1, by: 'Ada', text: 'I rang.', step: 1 };
  expect(timelineOf(await events('r')).marks).toMatchObject([{ kind: 'owner', why: 'waited' }, vote]);
  const refusal = { type: 'wait.refused', waitId: wait?.id ?? '', code: 'FORBIDDEN', reason: 'Not Bo.' } as const;
  const said = { ...refusal, by: { id: 'bo' }, runId: 'r', seq: 99, at: clock.now(), cursor: '' } as JournalEvent;
  expect(folded(timelineOf(await events('r')), [said]).marks[2]).toMatchObject({
    ...{ kind: 'refused', code: 'FORBIDDEN', text: 'Not Bo.', by: 'bo' },
  });
  await executor.control('r').approve(wait?.id ?? '', { by: { id: 'cy' }, note: 'It is due.' });
  await clock.advance(5_000);
  const [call] = timelineOf(await events('r')).steps[0]?.calls ?? [];
  expect(call?.wait?.end).toMatchObject({ how: 'approve', by: 'cy', note: 'It is due.' });
});

test('a `read` that runs has its whole input, until its step is recorded (studio 6)', async () => {
  const { begin, clock, events } = world();
  const input = { file: 'a.ts', note: 'x'.repeat(500) };
  const slow = toolOf('look', 'read', () => new Promise((resolve) => clock.setTimeout(() => resolve('seen'), 9_000)));
  const { executor, agent } = begin([callTool('look', input), hang()], [slow]);
  await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(2_000);
  expect(timelineOf(await events('r')).steps[0]?.calls).toMatchObject([{ name: 'look', input }]);
  await clock.advance(9_000);
  expect(timelineOf(await events('r')).steps[0]?.calls[0]).not.toHaveProperty('input');
});

test('a resumed pipeline marks no phase as working that was complete before (studio 3)', async () => {
  const { begin, clock, events } = world();
  const phases = ['look', 'tell'].map((name) => ({ name, instructions: `${name}.` }));
  const given = { phases, instructions: undefined };
  const dying = begin([reply('A'), callTool('look'), hang()], [toolOf('look', 'read', () => 'seen')], given);
  await dying.executor.start(dying.agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(2_000);
  dying.kill();
  await clock.advance(60_000);
  await begin([hang()], [toolOf('look', 'read', () => 'seen')], given).executor.recover();
  await clock.advance(1_000);
  const all = await events('r');
  const part = timelineOf(all.slice(all.findIndex(({ type }) => type === 'run.resumed')));
  expect(part.phases).toMatchObject([{ name: 'look', isDone: true }]);
  expect(timelineOf(all).phases).toMatchObject([{ isDone: true }, { isDone: false }]);
});

test('a steered message stands before the turn that reads it (studio 3)', async () => {
  const { begin, clock, events } = world();
  const look = toolOf('look', 'read', () => new Promise((resolve) => clock.setTimeout(() => resolve('seen'), 1_000)));
  const { executor, agent } = begin([callTool('look'), reply('Well.')], [look]);
  const run = await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(500);
  run.steer('Mind the\ntests.');
  await clock.advance(5_000);
  const { marks } = timelineOf(await events('r'));
  expect(marks).toMatchObject([{ kind: 'steer', count: 1, texts: ['Mind the tests.'], step: 2 }, { kind: 'ended' }]);
});

test('a pipeline has its phases with their steps, also those of phases that are over (studio 3, edges 24)', async () => {
  const { begin, clock, events } = world();
  const phases = ['look', 'tell'].map((name) => ({ name, instructions: `${name}.` }));
  const slow = toolOf('look', 'read', () => new Promise((resolve) => clock.setTimeout(() => resolve('seen'), 700)));
  const { executor, agent } = begin([callTool('look'), reply('A'), callTool('look'), hang()], [slow], {
    phases,
    instructions: undefined,
  });
  await executor.start(agent, { runId: 'r', prompt: 'Look.' });
  await clock.advance(5_000);
  const timeline = timelineOf(await events('r'));
  expect(timeline.phases).toMatchObject([
    { index: 0, name: 'look', isDone: true, ms: 700, last: 2 },
    { index: 1, name: 'tell', isDone: false, from: 700, first: 3, last: 4 },
  ]);
  // The turn of the model ends where its call begins.
  expect(timeline.steps.find(({ step }) => step === 3)).toMatchObject({
    from: 700,
    ms: 0,
    calls: [{ end: { ms: 700 } }],
  });
  expect(timeline.steps.map(({ step, phase }) => [step, phase])).toEqual([
    [1, 0],
    [2, 0],
    [3, 1],
    [4, 1],
  ]);
});

/** Events of a run of so many steps with three calls each. */
function longRun(steps: number): readonly JournalEvent[] {
  const usage = { inputTokens: 1, outputTokens: 1, reasoningTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const events: JournalEvent[] = [];
  const add = (body: object) =>
    events.push({ ...body, runId: 'r', seq: events.length, at: events.length + 1, cursor: '' } as JournalEvent);
  add({ type: 'run.started' });
  for (let step = 1; step <= steps; step++) {
    const calls = ['a', 'b', 'c'].map((name) => ({ name, callId: `${name}${step}` }));
    const content = calls.map(({ name, callId }) => ({
      ...{ type: 'tool-call', toolName: name, toolCallId: callId },
      input: { text: 'x'.repeat(1_000) },
    }));
    add({ type: 'step.snapshot', step, content });
    for (const call of calls)
      add({ ...call, type: 'tool.done', step, effect: 'read', output: { type: 'text', value: 'y' }, ms: 1 });
    add({ type: 'step.done', step, usage, tools: [] });
  }
  return events;
}

/** How often known steps are looked at while the events of one more step are folded. */
function looksAt(steps: number): number {
  const events = longRun(steps + 1);
  const before = timelineOf(events.slice(0, 1 + 5 * steps));
  let looks = 0;
  const counting = before.steps.map((step) => ({
    ...step,
    get step() {
      looks += 1;
      return step.step;
    },
  }));
  folded({ ...before, steps: counting }, events.slice(1 + 5 * steps));
  return looks;
}

test('folding a step of a run of 3,000 steps looks at as few steps as in a run of 30 (studio 33)', () => {
  expect(looksAt(30)).toBeGreaterThan(0);
  expect(looksAt(3_000)).toBe(looksAt(30));
});

test('a timeline of 3,000 steps, folded in pieces, keeps no event: a step has at most 1,500 characters (studio 20)', () => {
  const events = longRun(3_000);
  let timeline = emptyTimeline;
  for (let from = 0; from < events.length; from += 500) timeline = folded(timeline, events.slice(from, from + 500));
  expect(timeline.steps).toHaveLength(3_000);
  expect(JSON.stringify(timeline).length / timeline.steps.length).toBeLessThan(1_500);
});

test('a timeline of a workflow has its transitions, each with what it took, and the calls before it (workflow 23)', async () => {
  const { begin, clock, events } = world();
  const look = toolOf('look', 'read', () => 'seen');
  const workflow = defineWorkflow({
    id: 'flow',
    machine: setup({
      actors: { look: step(look), boss: ask({ question: 'Well?', quorum: 2 }) },
    }).createMachine({
      initial: 'looking',
      states: {
        looking: { invoke: { id: 'first', src: 'look', input: {}, onDone: 'asking' } },
        asking: { invoke: { id: 'boss', src: 'boss', input: {}, onDone: 'done' } },
        done: { type: 'final' },
      },
    }),
  });
  const { executor } = begin([], [], { executor: { workflows: [workflow] } });
  await executor.start(workflow, { runId: 'w', input: undefined });
  await clock.advance(5_000);
  const [wait] = await executor.waiting({ kind: 'question' });
  await executor.control('w').answer(wait?.id ?? '', 'yes', { by: { id: 'ada' } });
  await clock.advance(5_000);
  const { steps, marks } = timelineOf(await events('w'));
  expect(steps.map(({ step: number, took, calls }) => [number, took, calls.map(({ name }) => name)])).toEqual([
    [1, 'init → looking', []],
    [2, 'done: first → asking', ['look']],
    [3, '', ['boss']],
  ]);
  expect(marks).toMatchObject([
    { kind: 'owner', why: 'waited' },
    { kind: 'vote', of: 'question', by: 'ada', votes: 1 },
  ]);
});
