import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createExecutor,
  createPalette,
  defineAgent,
  memoryStore,
  type RunEvent,
  type RunOutcome,
  type Tool,
} from 'pawl';
import { testClock } from 'pawl/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { torture } from '../../crash/random.ts';
import { toolOf } from '../../fixtures/host.ts';
import { type Position, positions, type Row, rows } from './table.ts';
import { type Answer, type Format, formats, type Mode, modelAt, modes, replies } from './wires.ts';

/** One run that meets one failure. */
interface Cell {
  readonly row: Row;
  readonly position: Position;
  readonly format: Format;
  readonly mode: Mode;
}

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

const plans: Plan[] = [];
const server = createServer(async (request, response) => {
  const plan = plans[Number(request.url?.split('/')[1])] as Plan;
  const { row, position, format, mode } = plan;
  let body = '';
  for await (const chunk of request) body += chunk;
  const isFailing = plan.isFailing && body.includes(marks[position]);
  const answer = isFailing ? row.answer : soundAnswer(position, body);
  answer({ response, format, mode });
});
let address = '';
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await once(server.close(), 'close');
});

const aide = defineAgent({ id: 'aide', instructions: 'You are the AIDE.' });
const phases = [
  { name: 'one', instructions: 'Pay.' },
  { name: 'two', instructions: 'SUMMARY of {{.one}}' },
];

/** An executor whose runs meet the failure, what it said, and how often it paid. */
function hostOf(plan: Plan) {
  const { position, format, mode } = plan;
  const url = `${address}/${plans.push(plan) - 1}`;
  const clock = testClock(Date.UTC(2026, 0, 1));
  const seen = { events: [] as RunEvent[], paid: 0, outcome: undefined as RunOutcome | undefined, wake() {} };
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
    models: { fast: modelAt(url, format, mode) },
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
  const { executor, agent, clock, seen } = hostOf(plan);
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
  await executor.start(agent, { runId: 'r', prompt: 'Go.' });
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
    else if (event.type === 'tool.done' && event.output.type.startsWith('error')) happened.push('told');
  }
  await executor.shutdown();
  return { outcome: seen.outcome as RunOutcome, paid: seen.paid, happened };
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
 * The cells of a row: all of them in torture. Else each position in one format, and the later turn in each second one, in the
 * modes by turns; another row begins with another format.
 */
function cellsOf(row: Row, i: number): Cell[] {
  const usual = positions.flatMap((position, p) =>
    formats.flatMap((format, f) => {
      const isDrawn = torture > 1 || f === (i + p) % formats.length || (position === 'later' && (f + i) % 2 === 0);
      return isDrawn && (row.formats?.includes(format) ?? true) ? [{ row, position, format, turn: i + p + f }] : [];
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
