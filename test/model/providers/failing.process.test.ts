import type { LanguageModelV4 } from '@ai-sdk/provider';
import { type LanguageModelMiddleware, wrapLanguageModel } from 'ai';
import {
  createExecutor,
  createPalette,
  defineAgent,
  type Model,
  memoryStore,
  type RunEvent,
  type RunOutcome,
  type Tool,
} from 'pawl';
import { testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';
import {
  type Answer,
  type Format,
  formats,
  type Mode,
  modelAt,
  modes,
  replies,
  serveProvider,
} from './provider-server.ts';
import { type Position, positions, type Row, rows } from './table.ts';

/** One run that meets one failure. */
interface Cell {
  readonly row: Row;
  readonly position: Position;
  readonly format: Format;
  readonly mode: Mode;
}

type Outcome = Pick<RunOutcome, 'status' | 'error' | 'output'>;

interface Plan extends Cell {
  /** Whether the provider still fails. */
  isFailing: boolean;
}

/** What marks the requests that fail. */
const marks: { readonly [position in Position]: string } = {
  first: '',
  later: '"callOfPay"',
  phase: 'SUMMARY',
  child: 'AIDE',
  woken: '"callOfPay"',
};

/** What a sound provider says: the run pays, asks its sub-agent, and answers. */
function soundAnswer(position: Position, body: string): Answer {
  const says = (text: string) => replies({ text, end: 'stop' });
  const calls = (id: string, name: string, input: object) => replies({ call: { id, name, input }, end: 'calls' });
  if (position === 'first' || body.includes('SUMMARY')) return says('Here.');
  if (body.includes('AIDE')) return says('The aide says so.');
  if (!body.includes('"callOfPay"')) return calls('callOfPay', 'pay', { n: 1 });
  if (position === 'child' && !body.includes('"callAide1"'))
    return calls('callAide1', 'agent__aide', { prompt: 'Look.' });
  return says('Here.');
}

/** The provider of a cell, which fails as planned. */
const serve = (plan: Plan) =>
  serveProvider(
    plan.format,
    [
      (line) => {
        const isFailing = plan.isFailing && line.body.includes(marks[plan.position]);
        const { answer } = plan.row;
        (isFailing && typeof answer === 'function' ? answer : soundAnswer(plan.position, line.body))(line);
      },
    ],
    plan,
  );

const aide = defineAgent({ id: 'aide', instructions: 'You are the AIDE.' });
const phases = [
  { name: 'one', instructions: 'Pay.' },
  { name: 'two', instructions: 'SUMMARY of {{.one}}' },
];

/** The model of a row: where its provider does not fail, it throws by itself, or has no key. */
function failingModel(plan: Plan, { model, url }: { readonly model: Model; readonly url: string }): Model {
  const { answer } = plan.row;
  if (typeof answer === 'function') return model;
  const keyless = modelAt(plan.format, url, { mode: plan.mode, apiKey: undefined });
  const isMet = (prompt: unknown) => plan.isFailing && JSON.stringify(prompt).includes(marks[plan.position]);
  const middleware: LanguageModelMiddleware = {
    wrapStream: async ({ doStream, params }) => {
      if (!isMet(params.prompt)) return doStream();
      if (answer === 'no key') return (keyless as unknown as LanguageModelV4).doStream(params);
      throw answer.thrown();
    },
  };
  return wrapLanguageModel({ model: model as never, middleware }) as Model;
}

/** An executor whose runs meet the failure, what it said, and how often it paid. */
function hostOf(plan: Plan, provider: Parameters<typeof failingModel>[1]) {
  const { position } = plan;
  const clock = testClock(Date.UTC(2026, 0, 1));
  const seen = {
    ...{ events: [] as RunEvent[], paid: 0, wake() {} },
    outcome: undefined as Outcome | undefined,
  };
  const pay = toolOf('pay', 'once', async () => ++seen.paid);
  const agent = defineAgent({
    id: 'worker',
    instructions: 'Work.',
    tools: [{ ...pay, needsApproval: position === 'woken' } as Tool],
    ...(position === 'phase' ? { phases } : {}),
    ...(position === 'child' ? { subAgents: ['aide'] } : {}),
  });
  const executor = createExecutor({
    ...{ clock, agents: [agent, aide], store: memoryStore({ clock }), random: () => 0 },
    models: { fast: failingModel(plan, provider) },
    ports: { palette: createPalette({ agents: [aide] }) },
    defaults: { modelAttempts: 2, waitLingerMs: 1 },
    logger: { warn: () => {} },
    observers: [
      {
        onEvent: (event) => {
          seen.events.push(event);
          seen.wake();
        },
      },
    ],
    onOutcome: (outcome) => {
      if (outcome.runId === 'r') seen.outcome = outcome;
      seen.wake();
    },
  });
  return { executor, agent, clock, seen };
}

/** Lives a run to its end, through what its provider does. Time passes only where the run waits for it. */
async function lived(cell: Cell) {
  const plan: Plan = { ...cell, isFailing: true };
  await using provider = await serve(plan);
  const { executor, agent, clock, seen } = hostOf(plan, provider);
  const happened: string[] = [];
  const wake = async ({ runId, wait }: Extract<RunEvent, { type: 'wait.opened' }>) => {
    // The run comes to rest.
    await clock.advance(1);
    if (wait.kind === 'approval') await executor.control(runId).approve(wait.id);
    else if (wait.kind === 'retry') {
      happened.push(wait.needsPerson ? 'person' : 'waits');
      plan.isFailing = false;
      if (wait.needsPerson) await executor.control(runId).wake();
      else await clock.advance((wait.dueAt as number) - clock.now());
    }
    await clock.advance(1_000);
  };
  const started = await executor.start(agent, { runId: 'r', prompt: 'Go.' });
  void started.result.then((result) => {
    // Of a first start that fails nothing is kept, and so no outcome is delivered.
    if (result.status === 'error') seen.outcome ??= result;
    seen.wake();
  });
  let isLeft = false;
  for (let read = 0; ; read++) {
    while (read >= seen.events.length && !seen.outcome)
      await new Promise<void>((resolve) => {
        seen.wake = resolve;
      });
    const event = seen.events[read];
    if (!event) break;
    if (event.type === 'model.retry') {
      happened.push('again');
      await clock.advance(event.delayMs);
    } else if (event.type === 'wait.opened') await wake(event);
    else if (event.type === 'run.left') isLeft = true;
    // What a run that is left stops has no result.
    else if (event.type === 'tool.done' && event.output.type.startsWith('error') && !isLeft) happened.push('told');
    else if (event.type === 'run.ended' && event.runId === 'r' && event.error?.code === 'SETUP') {
      isLeft = false;
      happened.push('given back');
      plan.isFailing = false;
      await clock.advance(60_000);
      await executor.recover();
    }
  }
  await executor.shutdown();
  return { outcome: seen.outcome as Outcome, paid: seen.paid, happened };
}

const nameOf = ({ row, position, format, mode }: Cell) => `${row.failure}, ${position}, ${format}, ${mode}`;

/** The cell as a text: what happened, and how the run ended, unless it ended well after that. */
async function verdictOf(cell: Cell) {
  const { outcome, paid, happened } = await lived(cell);
  const { status, error, output } = outcome;
  if (status !== 'ok' || happened.length === 0) happened.push(status === 'ok' ? 'ok' : `ends ${error?.code}`);
  if (paid !== (cell.position === 'first' ? 0 : 1)) happened.push(`paid ${paid} times`);
  if (status === 'ok' && output.trim() === '') happened.push('empty');
  return happened.join(', ');
}

/**
 * The cells of a row: all of them in torture. Else each position in one format, in the modes by turns; another row begins with
 * another format.
 */
function cellsOf(row: Row, i: number): Cell[] {
  const usual = positions.flatMap((position, p) =>
    (row.formats ?? formats).flatMap((format, f, { length }) => {
      const isDrawn = torture > 1 || f === (i + p) % length;
      return isDrawn ? [{ row, position, format, turn: i + p + f }] : [];
    }),
  );
  return usual.flatMap(({ turn, ...cell }) => {
    if (row.isStreamed) return [{ ...cell, mode: 'streamed' }];
    return modes.filter((_, m) => torture > 1 || m === (turn >> 1) % modes.length).map((mode) => ({ ...cell, mode }));
  });
}

test('the table ends no run that has recorded something, but for its own end (edges 33)', () => {
  const others = rows.filter(({ isOwnEnd }) => !isOwnEnd);
  expect(others.length).toBeGreaterThan(10);
  for (const { verdicts } of others)
    for (const position of positions) if (position !== 'first') expect(verdicts[position]).not.toContain('ends');
});

describe('a provider that fails', () => {
  test.for(rows.map((row, i) => [row.failure, row, i] as const))(
    'with %s: the run asks again, waits or ends as the table says, and pays once (edges 33)',
    async ([, row, i]) => {
      const cells = cellsOf(row, i);
      const verdicts = await Promise.all(cells.map(verdictOf));
      expect(cells.map((cell, at) => `${nameOf(cell)}: ${verdicts[at]}`)).toEqual(
        cells.map((cell) => `${nameOf(cell)}: ${row.verdicts[cell.position]}`),
      );
    },
  );
});
