import type { AgentDefinition, Phase } from 'pawl';
import { callTool, hang, reply, type ScriptedEntry } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { type HostOptions, hostOf as hostWith, toolOf } from '../fixtures/host.ts';
import { diedWhen as diedWith, look, outputsOf, systemsOf, tell, two } from '../fixtures/phases.ts';
import { onlyRecord } from '../fixtures/watched-store.ts';

/** Pipelines as deploys change them: what they name may be gone. */
const hostOf = (options: HostOptions) => hostWith({ isForeign: true, ...options });
const diedWhen: typeof diedWith = (holds, options) => diedWith(holds, { isForeign: true, ...options });

const tools = [toolOf('look')];
const end: Phase = { name: 'c', instructions: 'C saw {{.b}}' };
type Pipeline = Pick<AgentDefinition, 'phases'>;
const single: Pipeline = {};
const pipeline = (...phases: Phase[]): Pipeline => ({ phases });

/** What a run leaves that has done phase a, and, if so said, a step of phase b. */
const leftBy = (agent: Pipeline, isWithin: boolean) => {
  const work: ScriptedEntry[] = isWithin ? [callTool('look'), hang()] : [hang()];
  const script = agent.phases ? [reply('one'), ...work] : [callTool('look'), ...work];
  return diedWhen(({ iteration }, { calls }) => iteration === script.length - 1 && calls.length === script.length, {
    agent,
    tools,
    script,
  });
};

const before = pipeline(look, tell, end);
/** Each is another pipeline to a run that is in its second phase. */
const changes: readonly [what: string, before: Pipeline, after: Pipeline][] = [
  ['the open phase was renamed', before, pipeline(look, { ...tell, name: 'z' }, end)],
  ['a finished phase was renamed', before, pipeline({ ...look, name: 'z' }, tell, end)],
  ['a finished phase says something else', before, pipeline({ ...look, instructions: 'Look again.' }, tell, end)],
  ['the open phase says something else', before, pipeline(look, { ...tell, instructions: 'Say it.' }, end)],
  ['the open phase has other tools', before, pipeline(look, { ...tell, tools: [] }, end)],
  ['the open phase has another tier', before, pipeline(look, { ...tell, model: 'deep' }, end)],
  ['the open phase was removed', before, pipeline(look, end)],
  ['a finished phase was removed', before, pipeline(tell, end)],
  ['all behind the finished phase were removed', before, pipeline(look)],
  ['a phase was added in front', before, pipeline(end, look, tell, end)],
  ['a phase was added before the open one', before, pipeline(look, end, tell, end)],
  ['the phases were reordered', before, pipeline(tell, look, end)],
  ['the pipeline became a single loop', before, single],
  ['the single loop became a pipeline', single, before],
];

describe.for(changes)('while a run was in its second step, %s', ([, first, after]) => {
  test('refuse: the run is parked with DEFINITION_CHANGED, its record kept and no model asked (pipeline 9)', async () => {
    const left = await leftBy(first, true);
    const { parked: _, attempts, ...record } = await onlyRecord(left);
    const next = hostOf({ agent: after, tools, store: left, script: [], onOutcome: () => expect.unreachable() });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'RUN_PARKED' } });
    expect(next.model.calls).toHaveLength(0);
    const kept = await onlyRecord(left);
    expect(kept).toMatchObject({
      ...record,
      revision: kept.revision,
      attempts,
      parked: { code: 'DEFINITION_CHANGED' },
    });
    expect(kept.parked?.reason).toMatch(/agent worker .*onDefinitionChange/);
    const report = await next.executor.recover();
    expect([report.parked.length, report.resumed.length]).toEqual([1, 0]);
  });

  test('refuse: it continues by itself when the definition is as before (pipeline 9)', async () => {
    const left = await leftBy(first, true);
    await hostOf({ agent: after, tools, store: left, script: [] }).run({ runId: 'r' });
    const script = first.phases ? [reply('two'), reply('three')] : [reply('three')];
    const back = hostOf({ agent: first, tools, store: left, script });
    expect(await back.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'three' });
    expect(back.model.calls).toHaveLength(script.length);
  });

  test('restart: it begins again, and what it has used is counted on (pipeline 9)', async () => {
    const left = await leftBy(first, true);
    const script = ['one', 'two', 'three', 'four'].slice(-(after.phases?.length ?? 1)).map((text) => reply(text));
    const next = hostOf({ agent: after, tools, store: left, script, onDefinitionChange: 'restart' });
    const result = await next.run({ runId: 'r' });
    expect(result).toMatchObject({ status: 'ok', output: 'four', iterations: 2 + script.length });
    expect(result.usage.inputTokens).toBe(10 * (2 + script.length));
    expect(result.phases.map(({ name }) => name)).toEqual((after.phases ?? []).map(({ name }) => name));
    expect(next.model.calls[0]?.messages).toHaveLength(1);
  });
});

describe('a run that was parked for its phases (pipeline 9)', () => {
  test('continues with recover once the definition is as before', async () => {
    const left = await leftBy(before, false);
    const changed = hostOf({ agent: pipeline(tell, look), store: left, script: [] });
    expect((await changed.executor.recover()).parked).toHaveLength(1);
    expect((await changed.executor.recover()).parked).toHaveLength(1);
    expect(await onlyRecord(left)).toMatchObject({ attempts: 0, parked: { code: 'DEFINITION_CHANGED' } });
    const back = hostOf({ agent: before, store: left, script: [reply('two'), reply('three')] });
    expect((await back.executor.recover()).resumed).toEqual([{ runId: 'r' }]);
    expect(await back.executor.get('r')?.result).toMatchObject({ status: 'ok', output: 'three' });
  });

  test('may be a single loop whose very first step was under way when it became a pipeline', async () => {
    const slow = [toolOf('send', 'idempotent', () => new Promise(() => {}))];
    const left = await diedWhen(({ openStep }) => openStep, { tools: slow, script: [callTool('send')] });
    const next = hostOf({ agent: { phases: two }, tools: slow, store: left, script: [] });
    expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'error', error: { code: 'RUN_PARKED' } });
    expect(await onlyRecord(left)).toMatchObject({ parked: { code: 'DEFINITION_CHANGED' } });
  });
});

describe('continue-matching keeps the completed phases that still match, from the first on (pipeline 9)', () => {
  const goOn = async (after: Pipeline, replies: number) => {
    const left = await leftBy(before, true);
    const script = Array.from({ length: replies }, (_, i) => reply(`new ${i}`));
    const next = hostOf({ agent: after, tools, store: left, script, onDefinitionChange: 'continue-matching' });
    const result = await next.run({ runId: 'r' });
    expect(next.model.calls).toHaveLength(replies);
    return { result, systems: systemsOf(next.model), messages: next.model.calls[0]?.messages };
  };

  test('and begins the changed one again', async () => {
    const { result, systems, messages } = await goOn(pipeline(look, { ...tell, instructions: 'Say {{.a}}' }, end), 2);
    expect(result).toMatchObject({ status: 'ok', output: 'new 1' });
    expect(outputsOf(result)).toEqual(['a: one', 'b: new 0', 'c: new 1']);
    expect(systems).toEqual(['Say one', 'C saw new 0']);
    expect(messages).toHaveLength(1);
  });

  test('which may be none', async () => {
    const { result } = await goOn(pipeline(end, look), 2);
    expect(outputsOf(result)).toEqual(['c: new 0', 'a: new 1']);
  });

  test('which may be all there are now: the run ends with what it has', async () => {
    const { result } = await goOn(pipeline(look), 0);
    expect(result).toMatchObject({ status: 'ok', output: 'one' });
  });

  test('which a single loop has not', async () => {
    const { result } = await goOn(single, 1);
    expect(result).toMatchObject({ status: 'ok', output: 'new 0', phases: [] });
  });

  test('also of a single loop that became a pipeline: none', async () => {
    const left = await leftBy(single, true);
    const options = { onDefinitionChange: 'continue-matching' as const, script: [reply('one'), reply('two')] };
    const next = hostOf({ agent: { phases: two }, tools, store: left, ...options });
    expect(outputsOf(await next.run({ runId: 'r' }))).toEqual(['a: one', 'b: two']);
  });

  test('and continues in the interrupted phase when nothing has changed', async () => {
    const { result, messages } = await goOn(before, 2);
    expect(outputsOf(result)).toEqual(['a: one', 'b: new 0', 'c: new 1']);
    expect(messages).toHaveLength(3);
  });
});

describe('what has not begun may change as it likes: today’s definition counts (pipeline 9)', () => {
  test.for([
    ['a phase was added at the end', pipeline(look, tell, end, end), ['b', 'c', 'c']],
    ['the last phase was removed', pipeline(look, tell), ['b']],
    ['the last phase says something else', pipeline(look, tell, { ...end, instructions: 'now' }), ['b', 'c']],
    ['the finished phase has another cap', pipeline({ ...look, maxSteps: 9 }, tell, end), ['b', 'c']],
    ['the open phase recovers in another way', pipeline(look, { ...tell, recovery: 'boundary' }, end), ['b', 'c']],
  ] as const)('%s', async ([, after, names]) => {
    const left = await leftBy(before, true);
    const next = hostOf({ agent: after, tools, store: left, script: names.map((name) => reply(`of ${name}`)) });
    const result = await next.run({ runId: 'r' });
    expect(result.status).toBe('ok');
    expect(outputsOf(result)).toEqual(['a: one', ...names.map((name) => `${name}: of ${name}`)]);
    expect(next.model.calls[0]?.messages).toHaveLength(3);
  });

  test('between two phases also the next one', async () => {
    const left = await leftBy(before, false);
    const next = hostOf({ agent: pipeline(look, end), store: left, script: [reply('two')] });
    expect(outputsOf(await next.run({ runId: 'r' }))).toEqual(['a: one', 'c: two']);
  });

  test('a run that has said nothing yet may become a pipeline', async () => {
    const left = await diedWhen(() => true, { script: [hang()] });
    const next = hostOf({ agent: { phases: two }, store: left, script: [reply('one'), reply('two')] });
    expect(outputsOf(await next.run({ runId: 'r' }))).toEqual(['a: one', 'b: two']);
  });
});

describe('a host that hands a resume state over', () => {
  test('whose phases do not match is refused with DEFINITION_CHANGED (pipeline 9)', async () => {
    for (const resume of [
      { history: [], completedPhases: [{ name: 'z', output: 'x' }] },
      {
        history: [
          { role: 'user' as const, content: [] },
          { role: 'assistant' as const, content: [] },
        ],
      },
    ]) {
      const next = hostOf({ agent: { phases: two }, script: [] });
      const result = await next.run({}, { resume });
      expect(result).toMatchObject({ status: 'error', error: { code: 'DEFINITION_CHANGED' } });
    }
  });

  test('may choose to keep what matches (pipeline 9)', async () => {
    const completedPhases = [
      { name: 'a', output: 'one' },
      { name: 'z', output: 'x' },
    ];
    const script = [reply('two')];
    const next = hostOf({ agent: { phases: two }, script, onDefinitionChange: 'continue-matching' });
    const result = await next.run({}, { resume: { history: [], completedPhases } });
    expect(outputsOf(result)).toEqual(['a: one', 'b: two']);
  });
});

test('an outcome that is still to be delivered is delivered, with any phases now (pipeline 9)', async () => {
  const left = await diedWhen((record) => record.outcome, {
    agent: { phases: two },
    script: [reply('one'), reply('two')],
    onOutcome: () => new Promise(() => {}),
  });
  const delivered: unknown[] = [];
  const next = hostOf({
    agent: pipeline(end),
    store: left,
    script: [],
    onOutcome: (outcome) => void delivered.push(outcome.output),
  });
  expect(await next.run({ runId: 'r' })).toMatchObject({ status: 'ok', output: 'two' });
  expect(delivered).toEqual(['two']);
});
