import {
  type CheckpointStore,
  createExecutor,
  createPalette,
  defineAgent,
  type Executor,
  type RunCheckpoint,
  type RunResult,
  type ToolContext,
} from 'pawl';
import { callTool, callTools, reply, type ScriptedRequest, type ScriptedStep } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../crash/random.ts';
import { answeringModel, promptOf, resultsOf, turnsOf } from '../fixtures/answering-model.ts';
import { childId } from '../fixtures/child-id.ts';
import { toolOf } from '../fixtures/host.ts';
import { type Left, type MortalProcess, mortalProcess } from '../fixtures/mortal-process.ts';
import { plainStore } from '../fixtures/watched-store.ts';

/** Three levels: the root asks two at a time, one of them asks a third, and all take notes. */
function answer(request: ScriptedRequest): ScriptedStep {
  const turn = turnsOf(request);
  const end = reply(`${promptOf(request)}: ${resultsOf(request).join(' + ') || 'nothing'}`);
  const note = callTool('note', { of: promptOf(request), turn }, `note-${turn}`);
  const ask = (name: string, prompt: string) => ({ name: `agent__${name}`, input: { prompt }, callId: prompt });
  if (request.system === 'root') {
    const steps = [callTools([ask('lead', 'first'), ask('writer', 'second')]), callTools([ask('writer', 'third')])];
    return steps[turn] ?? end;
  }
  if (request.system === 'lead') return [callTools([ask('writer', 'deep')]), note][turn] ?? end;
  return [note, note][turn] ?? end;
}

const agentsOf = (note: ReturnType<typeof toolOf>) => ({
  root: defineAgent({ id: 'root', instructions: 'root', subAgents: ['lead', 'writer'] }),
  palette: createPalette({
    agents: [
      defineAgent({ id: 'lead', instructions: 'lead', subAgents: ['writer'], tools: [note] }),
      defineAgent({ id: 'writer', instructions: 'writer', tools: [note] }),
    ],
  }),
});

interface Life {
  readonly result: RunResult | undefined;
  /** The turns that models were asked for, as `prompt turn`. */
  readonly turns: readonly string[];
  readonly resumed: readonly string[];
}

interface Around {
  /** The notes that were taken, by their key: each once, however often it is asked for. */
  readonly notes: Map<string, string>;
  readonly store?: CheckpointStore;
  /** Told of each turn before it is answered. */
  readonly onTurn?: (count: number, executor: Executor) => unknown;
}

/** A process that takes up what was left, or begins the run; it ends with the run, or with the executor. */
async function live(process: MortalProcess, around: Around): Promise<Life> {
  const { notes, store = process.store, onTurn } = around;
  const turns: string[] = [];
  const model = answeringModel(async (request) => {
    turns.push(`${promptOf(request)} ${turnsOf(request)}`);
    await onTurn?.(turns.length, executor);
    return answer(request);
  });
  const take = async ({ of, turn }: Record<string, unknown>, { idempotencyKey }: ToolContext) => {
    notes.set(idempotencyKey, `${of} ${turn}`);
    return `noted ${of} ${turn}`;
  };
  const { root, palette } = agentsOf(toolOf('note', 'idempotent', process.reaching(take)));
  const executor = createExecutor({
    models: { fast: process.model(model) },
    agents: [root],
    store,
    ports: { palette },
    logger: { warn: () => {} },
  });
  const whole = async () => {
    const { resumed } = await executor.recover();
    const result = await (executor.get('r')?.result ?? executor.run(root, { runId: 'r', prompt: 'all' }));
    return { result, resumed: resumed.map(({ runId }) => runId) };
  };
  const { result, resumed } = (await Promise.race([whole(), process.died])) ?? { result: undefined, resumed: [] };
  if (result) await executor.shutdown();
  return { result, turns, resumed };
}

/** The turns that are recorded. */
const recordedIn = ({ records }: Left): string[] =>
  records.flatMap(({ meta, iteration, openStep }) =>
    Array.from({ length: iteration + (openStep ? 1 : 0) }, (_, turn) => `${meta.prompt} ${turn}`),
  );

/** What the runs were asked that had ended: each says it first in its answer. */
const endedIn = ({ records, outcomes }: Left): string[] =>
  [...outcomes, ...records.flatMap(({ outcome }) => outcome ?? [])].map(({ output }) => output.split(':')[0] ?? '');

/** The children of which no record says who called for them: a model that names its calls anew would begin others. */
const uncalledIn = ({ records }: Left): string[] =>
  records.flatMap(({ meta: { runId, parentRunId } }) => {
    if (parentRunId === '') return [];
    const parent = records.find(({ meta }) => meta.runId === parentRunId);
    return parent?.openStep?.calls.some(({ callId }) => runId === childId(parentRunId, callId)) ? [] : [runId];
  });

const isRoot = ({ meta }: RunCheckpoint) => meta.runId === 'r';

/** What nobody interrupts. */
async function undisturbed() {
  const notes = new Map<string, string>();
  const { result } = await live(mortalProcess(), { notes });
  expect(result).toMatchObject({ status: 'ok', iterations: 3, saveErrors: 0 });
  return { notes, result: result as RunResult };
}

/** Of a run that had ended, only the answer is given again. */
function expectSame(result: RunResult | undefined, whole: RunResult, at: string): void {
  const messages = result?.messages.length === 0 ? [] : whole.messages;
  // One that ended before it was asked for again says so.
  const kept = result?.kept ? { kept: true, endedAt: expect.any(Number) } : {};
  expect(result, at).toEqual({ ...whole, messages, ...kept });
}

describe('a tree of runs whose process died', () => {
  test('after any write ends as if nothing had happened: no recorded turn is asked for again, no child that ended is run again (supervision 7)', async () => {
    const whole = await undisturbed();
    let diesAfter = 1;
    let endedBefore = 0;
    const stride = torture > 1 ? 1 : 3;
    for (; diesAfter < 200; diesAfter += stride) {
      const notes = new Map<string, string>();
      const process = mortalProcess(undefined, diesAfter);
      await live(process, { notes });
      if (!process.isDead) break;
      const left = await process.left();
      const { result, turns, resumed } = await live(mortalProcess(left), { notes });
      const at = `died after write ${diesAfter}`;
      expectSame(result, whole.result, at);
      expect(notes, at).toEqual(whole.notes);
      expect(uncalledIn(left), at).toEqual([]);
      const recorded = new Set(recordedIn(left));
      expect(
        turns.filter((turn) => recorded.has(turn)),
        at,
      ).toEqual([]);
      const ended = endedIn(left);
      expect(
        ended.filter((prompt) => turns.some((turn) => turn.startsWith(`${prompt} `))),
        at,
      ).toEqual([]);
      endedBefore += ended.length;
      // The others are children: they go on when their parents ask for them.
      expect(resumed, at).toEqual(left.records.some(isRoot) ? ['r'] : []);
    }
    expect(diesAfter).toBeGreaterThan(40);
    expect(diesAfter).toBeLessThan(200);
    expect(endedBefore).toBeGreaterThan(30 / stride);
  });

  test('and died again in the next process ends as if nothing had happened (supervision 7)', async () => {
    const whole = await undisturbed();
    let deaths = 0;
    const [stride, next] = torture > 1 ? [1, 1] : [9, 11];
    for (let first = 3; first < 46; first += stride) {
      for (let second = 1; second < 46 - first; second += next) {
        const notes = new Map<string, string>();
        const one = mortalProcess(undefined, first);
        await live(one, { notes });
        const two = mortalProcess(await one.left(), second);
        const { result } = await live(two, { notes });
        deaths += two.isDead ? 1 : 0;
        const last = two.isDead ? (await live(mortalProcess(await two.left()), { notes })).result : result;
        expectSame(last, whole.result, `died after write ${first}, and after write ${second}`);
        expect(notes).toEqual(whole.notes);
      }
    }
    expect(deaths).toBeGreaterThan(torture > 1 ? 600 : 6);
  });

  test('on a store that keeps no outcomes ends with the same answer, though a child may have to be run again (supervision 7)', async () => {
    const whole = await undisturbed();
    for (let diesAfter = 1; diesAfter < 50; diesAfter += torture > 1 ? 1 : 8) {
      const notes = new Map<string, string>();
      const process = mortalProcess(undefined, diesAfter);
      const { result } = await live(process, { notes, store: plainStore(process.store) });
      const next = mortalProcess(process.isDead ? await process.left() : undefined);
      const last = process.isDead ? (await live(next, { notes, store: plainStore(next.store) })).result : result;
      expectSame(last, whole.result, `died after write ${diesAfter}`);
      expect(notes).toEqual(whole.notes);
    }
  });
});

describe('a tree of runs that is left by a shutdown', () => {
  test('in any turn continues in the next process: all of it is left, and no turn is asked for twice but the one under way (supervision 7)', async () => {
    const whole = await undisturbed();
    let turn = 1;
    for (; turn < 50; turn++) {
      const notes = new Map<string, string>();
      const process = mortalProcess();
      let down: Promise<void> | undefined;
      const first = await live(process, {
        notes,
        onTurn: async (count, executor) => {
          if (count !== turn) return;
          down = executor.shutdown();
          await new Promise(() => {});
        },
      });
      await down;
      if (!down) {
        expectSame(first.result, whole.result, 'nothing was left');
        break;
      }
      expect(first.result, `left in turn ${turn}`).toMatchObject({ status: 'interrupted' });
      const left = await process.left();
      expect(left.records.every(({ attempts }) => attempts === 0)).toBe(true);
      const { result, turns } = await live(mortalProcess(left), { notes });
      expectSame(result, whole.result, `left in turn ${turn}`);
      expect(notes).toEqual(whole.notes);
      const recorded = new Set(recordedIn(left));
      expect(turns.filter((asked) => recorded.has(asked))).toEqual([]);
    }
    // Three turns of each of the five runs.
    expect(turn).toBe(16);
  });
});
