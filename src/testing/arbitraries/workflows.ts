import { type Agent, definitionOf } from '../../agent/agent.ts';

import { type RunCheckpoint, toCheckpoint } from '../../record/checkpoint.ts';
import { stepOf } from '../../run/open-step.ts';
import { beginProgress, type Progress, recordResult, startCalls, withoutConversation } from '../../run/progress.ts';
import { withdrawWaitsOf } from '../../run/waits/wait-rules.ts';
import { withEntered } from '../../run/workflow/advanced.ts';
import { checkMachineEvent, type MachineEvent } from '../../run/workflow/event.ts';
import type { JsonObject, JsonValue } from '../../values/json.ts';
import { advance } from '../../workflow/advance.ts';
import { type Program, programOf } from '../../workflow/program.ts';
import { agentOfWorkflow, type Workflow } from '../../workflow/workflow.ts';
import type { Arbitrary, Generators, GivenArbitrary } from './fast-check.ts';

/** What the records of a workflow are made of. */
export interface WorkflowStoryOptions {
  /** The input of its start; default null. */
  readonly input?: GivenArbitrary<unknown>;
  /** What its calls give, by the names of their actors in `setup({ actors })`; default: any JSON. */
  readonly outputs?: { readonly [actor: string]: GivenArbitrary<unknown> };
  /** Machine events from outside; default: none. */
  readonly events?: GivenArbitrary<MachineEvent>;
}

/** One thing that comes to a machine: which one of those that may come, and what it brings. */
interface Move {
  readonly nth: number;
  readonly outputs: { readonly [actor: string]: unknown };
  /** The call fails. */
  readonly fails: boolean;
  readonly event: MachineEvent | undefined;
}

const MAX_MOVES = 8;
const MANY = 2 ** 16;

/**
 * Makes an arbitrary of records of a workflow that is on its way: its machine begins, and then takes results of calls, timers and events,
 * in any order. A machine that throws, or ends, is left where it was before.
 * @throws {TypeError} for what is no workflow
 */
export function workflowsWith(
  fc: Generators,
  workflow: Workflow,
  options: WorkflowStoryOptions = {},
): Arbitrary<RunCheckpoint> {
  const agent = agentOfWorkflow(workflow);
  const program = agent && programOf(agent);
  if (!program) throw new TypeError('arbitraries: workflowCheckpoint needs a workflow made with defineWorkflow');
  const { input = fc.constantFrom(null), outputs = {}, events = fc.constantFrom(undefined) } = options;
  const json = fc.jsonValue({ maxDepth: 2 });
  const given = Object.fromEntries([...program.calls.keys()].map((src) => [src, outputs[src] ?? json]));
  const move = fc.record<Move>({
    nth: fc.nat(MANY),
    outputs: fc.record<JsonObject>(given as never),
    fails: fc.constantFrom(false, false, false, true),
    event: events as Arbitrary<MachineEvent | undefined>,
  });
  const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 });
  return fc
    .record({
      id,
      input: input as Arbitrary<unknown>,
      moves: fc.array(move, { maxLength: MAX_MOVES }),
      areBegun: fc.boolean(),
      now: fc.nat(2 ** 31),
    })
    .map(({ id: runId, input: value, moves, areBegun, now }) => {
      const story = new Story(agent, program, { runId: `run ${runId}`, input: value as JsonValue, now: now * 1_000 });
      for (const each of moves) story.move(each);
      return JSON.parse(JSON.stringify(story.record(areBegun))) as RunCheckpoint;
    });
}

class Story {
  readonly #program: Program;
  #progress: Progress;
  #now: number;
  #moves = 0;
  #isOver = false;

  constructor(agent: Agent, program: Program, begun: { runId: string; input: JsonValue; now: number }) {
    const meta = { ...noMeta, runId: begun.runId, agentId: agent.id, agentName: agent.name };
    const inputs = { input: begun.input };
    this.#program = program;
    this.#now = begun.now;
    this.#progress = withoutConversation(beginProgress(meta, definitionOf(agent), { inputs }));
    this.#take(this.#progress);
  }

  /** Lets one thing come, of those that may come now. */
  move(move: Move): void {
    if (this.#isOver) return;
    this.#now += 1_000;
    this.#moves += 1;
    const { openStep, workflow } = this.#progress;
    const calls =
      openStep?.calls.map(
        ({ callId }) =>
          () =>
            this.#answered(callId, move),
      ) ?? [];
    const timers =
      workflow?.timers.map(
        ({ waitId, dueAt }) =>
          () =>
            this.#fired(waitId, dueAt),
      ) ?? [];
    const { event } = move;
    const events = event
      ? [() => withEntered(this.#progress, { id: `event ${this.#moves}`, event: checkMachineEvent(event) })]
      : [];
    const all = [...calls, ...timers, ...events];
    const next = all[move.nth % all.length];
    if (next) this.#take(next());
  }

  /** Returns its record. @param areBegun its calls have begun: a crash came in the middle of them */
  record(areBegun: boolean): RunCheckpoint {
    const calls = this.#progress.openStep?.calls ?? [];
    const begun = areBegun ? startCalls(this.#progress, new Set(calls.map(({ callId }) => callId))) : this.#progress;
    return toCheckpoint({ ...begun, attempts: 0 }, this.#now, this.#progress.iteration);
  }

  #answered(callId: string, { outputs, fails }: Move): Progress {
    const { calls = {} } = this.#progress.workflow ?? {};
    const actorId = Object.keys(calls).find((id) => calls[id] === callId) ?? '';
    const children = this.#progress.workflow?.snapshot.children as { readonly [id: string]: { src: string } };
    const value = (outputs[children[actorId]?.src ?? ''] ?? null) as JsonValue;
    const result = fails ? ({ type: 'error-text', value: 'it failed' } as const) : ({ type: 'json', value } as const);
    const { openStep, ...progress } = this.#progress;
    // A step of its own: if the machine ends, its record is that of before.
    const own = openStep && { ...progress, openStep: stepOf(openStep.message, openStep.calls) };
    const answered = recordResult(startCalls(own ?? progress, new Set([callId])), callId, result as never);
    return withdrawWaitsOf(answered, (wait) => wait.callId === callId);
  }

  #fired(waitId: string, dueAt: number): Progress {
    this.#now = Math.max(this.#now, dueAt);
    return withdrawWaitsOf(this.#progress, ({ id }) => id === waitId);
  }

  #take(progress: Progress): void {
    let next = advance(this.#program, progress, this.#now);
    while (next.isMore) next = advance(this.#program, next.progress, this.#now);
    if (next.end) this.#isOver = true;
    else this.#progress = next.progress;
  }
}

const noMeta = { callerId: '', channelId: '', guildId: '', prompt: '', modelTier: '', parentRunId: '' };
