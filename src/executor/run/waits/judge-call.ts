import type { Agent } from '../../../agent/agent.ts';
import { approvalDigest, bornRunOf, idempotencyKeyOf, waitIdOf } from '../../../run/identity.ts';
import type { OpenCall } from '../../../run/open-step.ts';
import type { Progress } from '../../../run/progress.ts';
import type { Wait } from '../../../run/waits/wait.ts';
import type { ApprovalWords } from '../../../run/waits/wait-answer.ts';
import type { Judgement } from '../../../run/waits/wait-rules.ts';
import {
  APPROVAL_EXPIRES_MS,
  type ApprovalContext,
  policyVerdictFrom,
  toolHashOf,
  type Verdict,
  verdictFrom,
} from '../../../tool/approval.ts';
import type { Tool } from '../../../tool/define-tool.ts';
import { transcriptKey } from '../../../tool/run-tool.ts';
import type { Toolbox } from '../../../tool/toolbox.ts';
import { goneTool, unfitInput } from '../../../tool/unfit.ts';
import { withDeadline } from '../../../values/deadline.ts';
import { frozenJson, isObject, prototypeKeyIn } from '../../../values/json.ts';
import { noLabels } from '../../host/middleware.ts';
import type { JudgedCall } from '../../host/options.ts';
import type { RunRedaction } from '../../host/redaction.ts';
import type { LoopContext } from '../../services/loop-context.ts';
import type { ExecutorServices } from '../active-run.ts';
import { forkWords, isLimited, REFUSED } from './forked-call.ts';

/** Longest question to a person, in characters; a tool's own text may hold anything. */
const MAX_PROMPT_CHARS = 4_096;
/** Most characters of the JSON of a tool's facts for a person. */
const MAX_DETAIL_CHARS = 65_536;
/** Longest reason of a verdict, in characters: the record and the model get it. */
const MAX_REASON_CHARS = 4_096;

/** What judging a call reads of where its run is. */
export type JudgedProgress = Pick<
  Progress,
  | 'meta'
  | 'birth'
  | 'inputs'
  | 'iteration'
  | 'labels'
  | 'transcript'
  | 'openStep'
  | 'openPhase'
  | 'definition'
  | 'waiting'
  | 'effects'
  | 'beganAt'
  | 'forkedFrom'
>;

/** A run whose calls are judged, and whose answers are checked: a live one, or one as its record has it. */
export interface JudgedRun {
  readonly runId: string;
  readonly services: ExecutorServices;
  readonly agent: Pick<Agent, 'id'>;
  readonly progress: JudgedProgress | undefined;
  readonly redaction: RunRedaction | undefined;
  readonly resources: { readonly loops: readonly (JudgedLoop | undefined)[] };
}

/** What judging a call reads of the loop that it belongs to. */
export type JudgedLoop = Pick<LoopContext, 'tier'> & { readonly toolbox: Pick<Toolbox, 'tools'> };

/** A call that is judged, and the tool that would make it. */
export interface Candidate {
  readonly progress: JudgedProgress;
  readonly call: OpenCall;
  readonly tool: Tool | undefined;
  readonly phase: number;
}

/**
 * Judges a call before its first start: first its tool, then the executor's policy, whose verdict wins. A rule that throws, does
 * not answer in time, or returns something else means that a person must decide. Never rejects.
 */
export async function judgeCall(run: JudgedRun, candidate: Candidate): Promise<Judgement> {
  const { call, tool, progress } = candidate;
  const { callId } = call;
  const runs = { callId, verdict: 'run' } as const;
  if (tool && isLimited(progress, tool) && progress.effects === 'refuse')
    return { callId, verdict: 'deny', reason: REFUSED };
  const input = tool && (await tryInput(run, tool, call));
  // A call that cannot run needs no person. It has its error now: at its start the input might fit, or the tool be there, and no
  // rule would have seen it.
  if (!tool || !input) return { callId, verdict: 'unfit', error: goneTool(call.name) };
  if (input !== 'unchecked' && 'problem' in input) {
    const error = unfitInput(tool.name, input.problem);
    return isJudged(run, progress, tool) ? { callId, verdict: 'unfit', error } : runs;
  }
  // A call whose input cannot be checked now may run later: no rule has seen it then, so a person must.
  if (input === 'unchecked') {
    if (!isJudged(run, progress, tool)) return runs;
    return { callId, verdict: 'ask', wait: await approvalWait(run, { ...candidate, tool }) };
  }
  const judging = { ...candidate, tool, input: input.value };
  const verdict = await verdictOf(run, judging);
  if (verdict === 'run') return runs;
  if (verdict === 'ask') return { callId, verdict, wait: await approvalWait(run, judging) };
  if ('deny' in verdict) return { callId, verdict: 'deny', reason: reasonOf(verdict.deny) };
  const digest = approvalDigest(call.name, call.input, progress.definition.version);
  const at = run.services.config.clock.now();
  return { ...runs, allowed: { by: 'policy', at, digest, note: reasonOf(verdict.run) } };
}

function reasonOf(said: string): string {
  return said.slice(0, MAX_REASON_CHARS).toWellFormed();
}

/** The input as the tool would get it, or what is wrong with it. @throws the error of the schema */
async function validInput(
  run: JudgedRun,
  tool: Tool,
  call: OpenCall,
): Promise<{ readonly value: unknown } | { readonly problem: string }> {
  const key = prototypeKeyIn(call.input);
  if (key !== undefined) return { problem: `it holds the key ${key}, which no tool takes; leave it out` };
  if (typeof call.input === 'string' && tool.input.jsonSchema.type !== 'string')
    return { problem: 'the arguments are not valid JSON' };
  const validate = () => tool.input.validate(call.input);
  const validation = await askInTime(run, `the input schema of tool ${tool.name}`, validate);
  return validation.ok ? { value: validation.value } : { problem: validation.message };
}

/** The input as the tool would get it; `unchecked` if its schema threw or did not answer in time. Never rejects. */
async function tryInput(run: JudgedRun, tool: Tool, call: OpenCall) {
  try {
    return await validInput(run, tool, call);
  } catch (error) {
    const { runId, services } = run;
    services.config.warn('approval.input.unchecked', { runId, tool: tool.name, error });
    return 'unchecked';
  }
}

/** Whether the tool, or the executor, has rules for its calls. */
function isJudged({ services }: JudgedRun, progress: JudgedProgress, tool: Tool): boolean {
  const { needsApproval = false } = tool;
  return needsApproval !== false || services.config.approvals !== undefined || isLimited(progress, tool);
}

/** A call whose input fits its tool. */
export interface Judging extends Candidate {
  readonly tool: Tool;
  readonly input: unknown;
}

type Asked = Candidate & { readonly tool: Tool; readonly input?: unknown };

/** Returns the verdict on a call: the executor's, or, where that is undefined, the tool's. Never rejects. */
export async function verdictOf(run: JudgedRun, judging: Judging): Promise<Verdict> {
  const { approvals } = run.services.config;
  const own = await ownVerdict(run, judging);
  if (!approvals) return inFork(judging, own);
  const call = judgedCall(run, { ...judging, verdict: own });
  const verdict = await askRule(run, `approvals for tool ${judging.tool.name}`, async () => {
    const given: unknown = await approvals(call);
    return given === undefined ? own : policyVerdictFrom(given);
  });
  return inFork(judging, verdict);
}

/** In a fork with `effects: 'ask'` no rule lets a call with an effect run by itself. */
function inFork({ progress, tool }: Judging, verdict: Verdict): Verdict {
  const isRunning = verdict === 'run' || (verdict !== 'ask' && 'run' in verdict);
  return isRunning && isLimited(progress, tool) ? 'ask' : verdict;
}

async function ownVerdict(run: JudgedRun, { progress, tool, call, input }: Judging): Promise<Verdict> {
  const { needsApproval = false } = tool;
  if (typeof needsApproval !== 'function') return needsApproval === false ? 'run' : 'ask';
  const { callerId, channelId, guildId, parentRunId, prompt } = progress.meta;
  const invocation = { callerId, channelId, guildId, parentRunId, prompt, inputs: progress.inputs.value };
  const context: ApprovalContext = {
    runId: run.runId,
    callId: call.callId,
    agentId: run.agent.id,
    step: progress.iteration + 1,
    labels: progress.labels ?? noLabels,
    invocation,
    ...{ [transcriptKey]: () => progress.transcript.slice() },
  };
  return askRule(run, `needsApproval of tool ${tool.name}`, async () =>
    verdictFrom(await needsApproval(input, context)),
  );
}

function judgedCall(
  run: JudgedRun,
  { progress, call, phase, verdict }: Judging & { readonly verdict: Verdict },
): JudgedCall {
  const { callId, name, input, effect } = call;
  const tier = run.resources.loops[phase]?.tier ?? '';
  return Object.freeze({
    runId: run.runId,
    step: progress.iteration + 1,
    agentId: run.agent.id,
    tier,
    key: idempotencyKeyOf(bornRunOf(progress), { callId }),
    labels: progress.labels ?? noLabels,
    ...{ callId, name, input, effect, attempt: 1, verdict },
  });
}

/** Asks a rule of the host. */
async function askRule(run: JudgedRun, what: string, rule: () => Promise<Verdict | undefined>): Promise<Verdict> {
  const { warn } = run.services.config;
  try {
    const verdict = await askInTime(run, what, rule);
    if (verdict !== undefined) return verdict;
    warn('approval.rule.failed', { runId: run.runId, rule: what, error: new TypeError('it returned no verdict') });
  } catch (error) {
    warn('approval.rule.failed', { runId: run.runId, rule: what, error });
  }
  return 'ask';
}

async function askInTime<T>(run: JudgedRun, what: string, work: () => T | PromiseLike<T>): Promise<T> {
  const { clock, defaults } = run.services.config;
  return withDeadline(Promise.resolve(work()), { ms: defaults.portMs, clock, what });
}

/** Returns the wait for the approval of a call. Each one has another id. An input that is not checked gets no words. */
async function approvalWait(run: JudgedRun, { progress, call, tool, ...checked }: Asked): Promise<Wait> {
  const { expiresInMs = APPROVAL_EXPIRES_MS, onExpiry = 'deny', quorum = 1, editable = false } = tool.approval ?? {};
  const approvers = tool.approval?.approvers ? { approvers: true as const } : {};
  const words = await approvalWords(run, { progress, call, tool }, checked);
  const createdAt = run.services.config.clock.now();
  const { callId, name } = call;
  const digest = approvalDigest(name, call.input, progress.definition.version);
  return {
    id: waitIdOf([run.runId, callId, createdAt, digest]),
    createdAt,
    ...(Number.isFinite(expiresInMs) ? { dueAt: createdAt + Math.ceil(expiresInMs) } : {}),
    ...{ step: progress.iteration + 1, callId, tool: name, kind: 'approval', digest },
    ...words,
    ...{ quorum, votes: [], editable, ...approvers, onExpiry, toolHash: toolHashOf(tool) },
  };
}

/** What becomes of an approval whose call, tool or agent is another one than its person saw. */
export type Changed = { readonly again: Wait } | { readonly unfit: string };

/** Returns the wait that asks again about a call, or why the call can never run. */
export async function approvalAgain(run: JudgedRun, candidate: Candidate, before: Wait): Promise<Changed> {
  const { call, tool } = candidate;
  if (!tool) return { unfit: goneTool(call.name) };
  const input = await tryInput(run, tool, call);
  if (input !== 'unchecked' && 'problem' in input) return { unfit: unfitInput(tool.name, input.problem) };
  const checked = input === 'unchecked' ? { ...candidate, tool } : { ...candidate, tool, input: input.value };
  const wait = await approvalWait(run, checked);
  // The question before may have begun in this millisecond.
  return { again: { ...wait, id: waitIdOf([before.id, wait.id]) } };
}

/** Returns the question and the facts for the person. In a fork the question begins with what the origin did. */
export async function approvalWords(
  run: JudgedRun,
  { progress, call, tool }: Pick<Asked, 'progress' | 'call' | 'tool'>,
  checked: { readonly input?: unknown },
): Promise<ApprovalWords> {
  const words = 'input' in checked ? ownWords(run, tool, checked.input) : {};
  const fork = await forkWords(run, progress, call);
  if (fork === undefined) return words;
  return { ...words, prompt: [fork, words.prompt].filter(Boolean).join(' ').slice(0, MAX_PROMPT_CHARS) };
}

/** The words of the tool; a call without them is asked about all the same. */
function ownWords(run: JudgedRun, { name, approval }: Tool, input: unknown): ApprovalWords {
  try {
    const prompt: unknown = settledNow(approval?.prompt?.(input));
    const detail = settledNow(approval?.detail?.(input));
    const facts = detail === undefined ? undefined : frozenJson(detail, 'detail');
    const isSmall = facts === undefined || JSON.stringify(facts).length <= MAX_DETAIL_CHARS;
    return {
      ...(typeof prompt === 'string' && prompt !== ''
        ? { prompt: prompt.slice(0, MAX_PROMPT_CHARS).toWellFormed() }
        : {}),
      ...(facts !== undefined && isSmall ? { detail: facts } : {}),
    };
  } catch (error) {
    run.services.config.warn('approval.question.failed', {
      runId: run.runId,
      tool: name,
      error,
    });
    return {};
  }
}

/** A promise is no question and no fact; its failure must not reach the process. @throws {TypeError} for a promise */
function settledNow<T>(value: T): T {
  if (!isObject(value) || typeof value.then !== 'function') return value;
  void Promise.resolve(value).catch(() => {});
  throw new TypeError('it returned a promise; prompt and detail of an approval return a value');
}
