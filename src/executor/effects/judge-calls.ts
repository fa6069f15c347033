import type { JudgeInput } from '../../../machines/setup.ts';
import { approvalDigest, idempotencyKeyOf, waitIdOf } from '../../run/identity.ts';
import type { OpenCall } from '../../run/open-step.ts';
import type { Progress } from '../../run/progress.ts';
import type { Wait } from '../../run/waits/wait.ts';
import type { Judgement } from '../../run/waits/wait-rules.ts';
import { APPROVAL_EXPIRES_MS, type ApprovalContext, type Verdict, verdictFrom } from '../../tool/approval.ts';
import type { Tool } from '../../tool/define-tool.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { frozenJson, type JsonValue, prototypeKeyIn } from '../../values/json.ts';
import { noLabels } from '../host/middleware.ts';
import type { JudgedCall } from '../host/options.ts';
import type { ActiveRun } from '../run/active-run.ts';

/** Longest question to a person, in characters; a tool's own text may hold anything. */
const MAX_PROMPT_CHARS = 4_096;
/** Most characters of the JSON of a tool's facts for a person. */
const MAX_DETAIL_CHARS = 65_536;

/**
 * Judges each call of a step before it opens: first its tool, then the executor's policy, whose verdict wins. A rule that
 * throws, does not answer in time, or returns something else means that a person must decide. Never rejects.
 */
export async function judgeCalls(input: JudgeInput, run: ActiveRun): Promise<readonly Judgement[]> {
  const { progress, phase = 0 } = input;
  const tools = run.resources.loops[phase]?.toolbox.tools;
  const planned = (progress.openStep?.calls ?? []).filter(({ state }) => state === 'planned');
  return Promise.all(planned.map((call) => judged(run, progress, { call, tool: tools?.get(call.name), phase })));
}

interface Candidate {
  readonly call: OpenCall;
  readonly tool: Tool | undefined;
  readonly phase: number;
}

async function judged(run: ActiveRun, progress: Progress, candidate: Candidate): Promise<Judgement> {
  const { call, tool } = candidate;
  const { callId } = call;
  const runs = { callId, verdict: 'run' } as const;
  // A call that cannot run needs no person: its error tells the model why.
  const input = tool && (await validInput(run, tool, call));
  if (!tool || !input) return runs;
  const verdict = await verdictOf(run, progress, { ...candidate, tool, input: input.value });
  if (verdict === 'run') return runs;
  if (verdict === 'ask') return { callId, verdict, wait: waitFor(run, progress, { call, tool, input: input.value }) };
  if ('deny' in verdict) return { callId, verdict: 'deny', reason: verdict.deny };
  const digest = approvalDigest(call.name, call.input, progress.definition.version);
  const at = run.services.config.clock.now();
  return { ...runs, allowed: { by: 'policy', at, digest, note: verdict.run } };
}

/** The input as the tool would get it; undefined for one that does not fit. */
async function validInput(
  run: ActiveRun,
  tool: Tool,
  call: OpenCall,
): Promise<{ readonly value: unknown } | undefined> {
  if (prototypeKeyIn(call.input) !== undefined) return undefined;
  try {
    const validation = await bounded(run, `the input schema of tool ${tool.name}`, () =>
      tool.input.validate(call.input),
    );
    return validation.ok ? { value: validation.value } : undefined;
  } catch {
    return undefined;
  }
}

interface Judging extends Candidate {
  readonly tool: Tool;
  readonly input: unknown;
}

async function verdictOf(run: ActiveRun, progress: Progress, judging: Judging): Promise<Verdict> {
  const { approvals } = run.services.config;
  const own = await ownVerdict(run, progress, judging);
  if (!approvals) return own;
  const call = judgedCall(run, progress, { ...judging, verdict: own });
  return asked(run, `approvals for tool ${judging.tool.name}`, async () => (await approvals(call)) ?? own);
}

async function ownVerdict(run: ActiveRun, progress: Progress, { tool, call, input }: Judging): Promise<Verdict> {
  const { needsApproval = false } = tool;
  if (typeof needsApproval !== 'function') return needsApproval ? 'ask' : 'run';
  const { callerId, channelId, guildId, parentRunId, prompt } = progress.meta;
  const invocation = { callerId, channelId, guildId, parentRunId, prompt, inputs: progress.inputs.value };
  const context: ApprovalContext = {
    runId: run.runId,
    callId: call.callId,
    agentId: run.agent.id,
    step: progress.iteration + 1,
    labels: progress.labels ?? noLabels,
    invocation,
  };
  return asked(run, `needsApproval of tool ${tool.name}`, async () => needsApproval(input, context));
}

function judgedCall(
  run: ActiveRun,
  progress: Progress,
  { call, phase, verdict }: Judging & { verdict: Verdict },
): JudgedCall {
  const { callId, name, input, effect } = call;
  const tier = run.resources.loops[phase]?.tier ?? '';
  return Object.freeze({
    runId: run.runId,
    step: progress.iteration + 1,
    agentId: run.agent.id,
    tier,
    key: idempotencyKeyOf(run.runId, callId),
    labels: progress.labels ?? noLabels,
    ...{ callId, name, input, effect, attempt: 1, verdict },
  });
}

/** Asks a rule of the host. */
async function asked(run: ActiveRun, what: string, rule: () => Promise<unknown>): Promise<Verdict> {
  const { warn } = run.services.config;
  try {
    const verdict = verdictFrom(await bounded(run, what, rule));
    if (verdict !== undefined) return verdict;
    warn(`run: ${what} returned no verdict; a person must approve`, { runId: run.runId });
  } catch (error) {
    warn(`run: ${what} failed; a person must approve`, { runId: run.runId, error: toErrorData(error) });
  }
  return 'ask';
}

async function bounded<T>(run: ActiveRun, what: string, work: () => T | PromiseLike<T>): Promise<T> {
  const { clock, defaults } = run.services.config;
  return withDeadline(Promise.resolve(work()), { ms: defaults.portMs, clock, what });
}

function waitFor(
  run: ActiveRun,
  progress: Progress,
  { call, tool, input }: { call: OpenCall; tool: Tool; input: unknown },
): Wait {
  const { expiresInMs = APPROVAL_EXPIRES_MS, onExpiry = 'deny', quorum = 1, editable = false } = tool.approval ?? {};
  const createdAt = run.services.config.clock.now();
  const { callId, name } = call;
  return {
    id: waitIdOf([run.runId, callId, createdAt]),
    createdAt,
    ...(Number.isFinite(expiresInMs) ? { dueAt: createdAt + Math.ceil(expiresInMs) } : {}),
    ...{ step: progress.iteration + 1, callId, tool: name, kind: 'approval' },
    digest: approvalDigest(name, call.input, progress.definition.version),
    ...wordsFor(run, tool, input),
    ...{ quorum, votes: [], editable, onExpiry },
  };
}

/** The question and the facts for the person; a call without them is asked about all the same. */
function wordsFor(run: ActiveRun, { name, approval }: Tool, input: unknown): { prompt?: string; detail?: JsonValue } {
  try {
    const prompt: unknown = approval?.prompt?.(input);
    const detail = approval?.detail?.(input);
    const facts = detail === undefined ? undefined : frozenJson(detail, 'detail');
    const isSmall = facts === undefined || JSON.stringify(facts).length <= MAX_DETAIL_CHARS;
    return {
      ...(typeof prompt === 'string' && prompt !== ''
        ? { prompt: prompt.slice(0, MAX_PROMPT_CHARS).toWellFormed() }
        : {}),
      ...(facts !== undefined && isSmall ? { detail: facts } : {}),
    };
  } catch (error) {
    run.services.config.warn(`run: the question of tool ${name} cannot be made; the person sees the input alone`, {
      runId: run.runId,
      error: toErrorData(error),
    });
    return {};
  }
}
