import type { AnyMachineSnapshot } from 'xstate';
import type { Executor } from '../executor/executor.ts';
import { createExecutor } from '../executor/executor.ts';
import type { RunCheckpoint } from '../record/checkpoint.ts';
import type { RunResult } from '../run/result.ts';
import { memoryStore } from '../store/memory/memory-store.ts';
import { defineTool } from '../tool/define-tool.ts';
import { ReadyOutput } from '../tool/output.ts';
import { canonicalJson, type JsonValue } from '../values/json.ts';
import { checkKeys } from '../values/known-options.ts';
import { defineWorkflow } from '../workflow/define.ts';
import { step as actorOf } from '../workflow/step.ts';
import type { Workflow } from '../workflow/workflow.ts';
import { type TestClock, testClock } from './test-clock.ts';

/** A path through a machine, as `getShortestPaths` and `getSimplePaths` of `xstate/graph` give it. */
export interface MachinePath {
  readonly steps: readonly {
    readonly event: { readonly type: string };
    /** The snapshot after the event. */
    readonly state: unknown;
  }[];
}

export interface TestPathsOptions {
  /** The input of the machine; `getShortestPaths` has the same in its options. */
  readonly input?: unknown;
}

/** What `testPaths` has walked. */
export interface WalkedPaths {
  readonly paths: number;
  /** Events that were taken. */
  readonly steps: number;
}

/**
 * Walks each path against a real executor, and compares state and context after each event. The actors of the machine are scripted: the
 * events of a path say how each call ends (`xstate.done.actor.<id>` with its `output`, `xstate.error.actor.<id>` with its `error`) and which
 * timer fires (`xstate.after.…`). Any other event is sent. No tool, agent or person of the workflow is called.
 *
 * @returns how much was walked
 * @throws {Error} at the first difference: the path, the state that the run has, and the one that it should have
 * @example
 * const paths = getShortestPaths(refund.machine, { input, events: [{ type: 'xstate.done.actor.0.refund.looking', output: { cents: 5 } }] });
 * await testPaths(refund, paths, { input });
 */
export async function testPaths(
  workflow: Workflow,
  paths: readonly MachinePath[],
  options: TestPathsOptions = {},
): Promise<WalkedPaths> {
  checkKeys(options, { input: true }, { of: 'testPaths' });
  let steps = 0;
  for (const path of paths) steps += await new Walk(workflow, path, options.input).run();
  return { paths: paths.length, steps };
}

type Ending = { readonly output: unknown } | { readonly error: unknown };

const RUN_ID = 'path';
const LONG_MS = 2 ** 31 - 1;
/** So many turns of the event loop a run gets for one event. */
const MAX_TURNS = 2_000;

class Walk {
  readonly #path: MachinePath;
  readonly #input: unknown;
  readonly #clock: TestClock = testClock(1_700_000_000_000);
  readonly #store = memoryStore({ clock: this.#clock });
  readonly #workflow: Workflow;
  readonly #executor: Executor;
  /** How calls end, by their ids. */
  readonly #endings = new Map<string, PromiseWithResolvers<Ending>>();
  #result: RunResult | undefined;

  constructor(workflow: Workflow, path: MachinePath, input: unknown) {
    const { id, version, machine } = workflow;
    this.#path = path;
    this.#input = input;
    const scripted = Object.keys(machine.implementations.actors).map((src) => [src, actorOf(this.#toolOf(src))]);
    const provided = machine.provide({ actors: Object.fromEntries(scripted) } as never);
    this.#workflow = defineWorkflow({ id, version, machine: provided }) as Workflow;
    this.#executor = createExecutor({
      store: this.#store,
      workflows: [this.#workflow],
      clock: this.#clock,
      // It stays in this process, and no look or renewal makes a leap of the clock long.
      defaults: { waitLingerMs: LONG_MS, dueMs: LONG_MS, controlMs: LONG_MS, leaseMs: LONG_MS },
    });
  }

  async run(): Promise<number> {
    try {
      for (const [index, step] of this.#path.steps.entries()) {
        await this.#make(step.event, index);
        await this.#compare(step.state as AnyMachineSnapshot, index);
      }
      return this.#path.steps.length;
    } finally {
      await this.#executor
        .control(RUN_ID)
        .cancel('the path is walked')
        .catch(() => {});
      await this.#executor.shutdown();
    }
  }

  #toolOf(src: string) {
    return defineTool({
      name: src,
      description: '',
      effect: 'idempotent',
      input: {},
      timeoutMs: LONG_MS,
      execute: async (_, { callId }): Promise<unknown> => {
        const ending = await this.#endingOf(callId).promise;
        return 'error' in ending ? new ReadyOutput({ type: 'error-json', value: ending.error }) : ending.output;
      },
    });
  }

  #endingOf(callId: string): PromiseWithResolvers<Ending> {
    const known = this.#endings.get(callId) ?? Promise.withResolvers<Ending>();
    this.#endings.set(callId, known);
    return known;
  }

  /** Lets an event come to the machine. */
  async #make(event: { readonly type: string }, index: number): Promise<void> {
    const { type } = event;
    if (type === 'xstate.init') {
      const run = await this.#executor.start(this.#workflow, { runId: RUN_ID, input: this.#input as never });
      void run.result.then((result) => {
        this.#result = result;
      });
      return;
    }
    const [, kind, actorId = ''] = /^xstate\.(done|error)\.actor\.(.+)$/s.exec(type) ?? [];
    if (kind) {
      const { output = null, error } = event as { readonly output?: unknown; readonly error?: unknown };
      const callId = await this.#until((record) => record?.workflow?.calls[actorId], index, `the call of ${actorId}`);
      this.#endingOf(callId).resolve(kind === 'done' ? { output } : { error });
    } else if (type.startsWith('xstate.after.')) await this.#fire(type, index);
    else await this.#executor.control(RUN_ID).send(event as never, { id: `step-${index}` });
  }

  async #fire(sendId: string, index: number): Promise<void> {
    const dueAt = await this.#until(
      (record) => {
        const timer = record?.workflow?.timers.find((each) => each.sendId === sendId);
        return record?.waiting?.waits.find(({ id }) => id === timer?.waitId)?.dueAt;
      },
      index,
      `the timer ${sendId}`,
    );
    await this.#clock.advance(Math.max(0, dueAt - this.#clock.now()));
  }

  async #compare(expected: AnyMachineSnapshot, index: number): Promise<void> {
    if (expected.status === 'active') {
      const wanted = shown(expected);
      await this.#until((record) => (record && shown(snapshotOf(record)) === wanted ? true : undefined), index, wanted);
      return;
    }
    await this.#until(() => this.#result, index, `its end (${expected.status})`);
    const { status, data } = this.#result as RunResult;
    const isEqual =
      expected.status === 'done' ? status === 'ok' && sameJson(data, expected.output) : status === 'error';
    if (!isEqual) throw this.#differs(index, `${expected.status} ${text(expected.output)}`, `${status} ${text(data)}`);
  }

  /** Waits until the record has something. Time does not pass meanwhile. */
  async #until<T>(find: (record: RunCheckpoint | null) => T | undefined, index: number, what: string): Promise<T> {
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const found = find(await this.#store.load(RUN_ID));
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    const record = await this.#store.load(RUN_ID);
    const is = record ? shown(snapshotOf(record)) : `ended: ${this.#result?.status} ${text(this.#result?.error)}`;
    throw this.#differs(index, what, is);
  }

  #differs(index: number, wanted: string, is: string): Error {
    const events = this.#path.steps.slice(0, index + 1).map(({ event }) => event.type);
    return new Error(
      `testPaths: after ${events.join(' > ')} the run of ${this.#workflow.id} should have ${wanted}, and is ${is}`,
    );
  }
}

function snapshotOf({ workflow }: RunCheckpoint): { readonly value?: unknown; readonly context?: unknown } {
  return workflow?.snapshot ?? {};
}

function shown({ value, context }: { readonly value?: unknown; readonly context?: unknown }): string {
  return `${text(value)} with context ${text(context)}`;
}

/** As a record has it: fields that are undefined are absent. */
function text(value: unknown): string {
  return canonicalJson(JSON.parse(JSON.stringify(value ?? null)) as JsonValue);
}

function sameJson(one: unknown, other: unknown): boolean {
  return text(one) === text(other);
}
