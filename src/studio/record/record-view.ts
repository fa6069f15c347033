import { RequestError } from '../../http/problem.ts';
import type { GrantedCall } from '../../http/route.ts';
import { checkOwnRun, type OwnRun } from '../../http/run-access.ts';
import { childrenOf, runLine } from '../../http/runs/run-line.ts';
import { maxStepsOf, withoutOwner } from '../../http/runs/run-list.ts';
import { endOfView, runViewOf } from '../../http/runs/run-view.ts';
import type { Agent, ExplainOptions, RunExplanation, RunOutput, Tool } from '../../index.ts';
import { childRunId } from '../../run/identity.ts';
import { ownerName } from '../../store/owner.ts';
import { hasCode, readProperty } from '../../values/error-data.ts';
import { isAmount } from '../../values/json.ts';
import { type ModelUse, modelUses } from '../../values/model-use.ts';
import type { Studio } from '../studio.ts';
import { formsOf, shownAnswersOf, shownWaits } from '../waits.ts';
import type { ChildView, ModelUsage, RecordView, RunLine, UsageView } from '../wire.ts';
import { machineView } from './machine-view.ts';
import { recordFacts } from './record-facts.ts';
import { beginsRun, type TranscriptFacts, type Transcripts } from './transcripts.ts';
import { verdictLine } from './verdict-line.ts';
import { verdictView } from './verdict-view.ts';

/** A run of a request, and all that is known of it. */
export interface Inspected {
  /** Undefined for a run whose record cannot be read. */
  readonly run: OwnRun | undefined;
  readonly seen: RunExplanation;
}

const unreadable = ['CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];

/**
 * Finds the run of a request. One that cannot be read says nothing of its caller: only a reader of all runs may see it.
 * @throws {RequestError} NOT_FOUND
 */
export async function readInspected(call: GrantedCall, options: ExplainOptions = {}): Promise<Inspected> {
  return { run: await runOf(call), seen: await inspect(call, options) };
}

/** Inspects the run of a request that its caller may see. @throws {RequestError} NOT_FOUND */
export async function inspect({ served, params }: GrantedCall, options: ExplainOptions): Promise<RunExplanation> {
  const seen = await served.executor.explain(params.runId ?? '', options);
  if (!seen) throw new RequestError('NOT_FOUND');
  return seen;
}

function runOf({ served, params, grant }: GrantedCall): Promise<OwnRun | undefined> {
  return checkOwnRun(served, params.runId ?? '', grant).catch((error: unknown) => {
    if (grant.all && unreadable.some((code) => hasCode(error, code))) return undefined;
    throw error;
  });
}

/** What the answers of a Studio share: the tools that agents name, and what is known of the messages of runs. */
interface Shared {
  readonly tools: readonly Tool[];
  readonly resume: Studio['resume'];
  readonly transcripts: Transcripts;
}

/** Makes the answer of `GET /runs/:runId/record`. */
export async function recordView(call: GrantedCall, { tools, resume, transcripts }: Shared): Promise<RecordView> {
  const { served, grant, params } = call;
  const all = grant.all === true;
  const run = await runOf(call);
  const { seen, facts } = await transcripts.look(params.runId ?? '', (messages) =>
    inspect(call, { messages, budget: true }),
  );
  if (!run) return unreadableView(seen);
  const { rootRunId, parentRunId, waits, result: _, ...line } = await runViewOf({ ...call, run });
  const { record } = seen;
  const outcome = seen.outcome ?? (run.line.status === 'ended' ? run.line.outcome : undefined);
  const view = {
    line: outcome?.error && all ? { ...line, why: outcome.error.message, code: outcome.error.code } : line,
    rootRunId,
    ...(parentRunId === undefined ? {} : { parentRunId }),
    waits: shownWaits(waits),
    ...shownAnswersOf(waits, seen.commands),
    ...formsOf(waits, { tools: agentOf(served, line.agentId)?.tools, registry: tools }),
    verdict: verdictView(seen, all),
    ...(seen.state === undefined ? {} : { state: { name: seen.state, isLive: seen.isLive } }),
    ...machineView(seen),
    ...(all ? ownerOf(seen) : {}),
    ...(all ? resumeOf(seen, { rootRunId, line, resume }) : {}),
    ...(record ? { record: recordFacts({ seen, record, facts }, all) } : { missing: missingFor(seen, all) }),
    usage: usageOf(seen, run),
    ...budgetOf(seen),
    children: await childrenBelow(served, run, { seen, facts, all }),
    ...(outcome ? { result: resultOf(outcome, all) } : {}),
  };
  return { ...view, says: verdictLine(view) };
}

function agentOf({ agents, executor }: GrantedCall['served'], agentId: string): Agent | undefined {
  return [...agents.values()].find(({ id }) => id === agentId) ?? executor.agent(agentId);
}

function unreadableView(seen: RunExplanation): RecordView {
  const { runId, reason, code } = seen;
  const view = {
    line: runLine({ runId, status: 'quarantined', reason: code ? `${code}: ${reason}` : reason }),
    rootRunId: runId,
    waits: [],
    verdict: verdictView(seen, true),
    missing: missingFor(seen, true),
    usage: { inputTokens: 0, outputTokens: 0, models: [] },
    children: [],
  };
  return { ...view, says: verdictLine(view) };
}

function ownerOf({ owner, isLive }: RunExplanation): Pick<RecordView, 'owner'> {
  if (!owner) return {};
  const until = owner.until === undefined ? {} : { leaseUntil: owner.until };
  return { owner: { name: ownerName(owner.name), id: owner.name, ...until, isHere: isLive } };
}

interface Resumed extends Pick<RecordView, 'rootRunId'>, Pick<Shared, 'resume'> {
  readonly line: Pick<RunLine, 'owner'>;
}

/** What continues a run that no process holds. */
function resumeOf(
  { verdict, owner, isLive }: RunExplanation,
  { rootRunId, line, resume }: Resumed,
): Pick<RecordView, 'resume'> {
  const isHeld = isLive || owner !== undefined || line.owner !== undefined;
  if (isHeld || !['waits', 'resumes', 'child'].includes(verdict)) return {};
  if (!resume) return { resume: { text: 'It continues when a process with its agent looks for work.' } };
  const command = commandFrom(resume, rootRunId);
  if (command !== undefined) return { resume: { text: 'It continues when a process takes it up:', command } };
  return { resume: { text: 'A program began it: start that again, and its executor.recover() continues the run.' } };
}

/** A host's callback may throw, or return anything: then there is no command. */
function commandFrom(resume: NonNullable<Shared['resume']>, runId: string): string | undefined {
  try {
    const command: unknown = resume(runId);
    // A promise that rejects would end the process.
    if (command instanceof Promise) command.catch(() => {});
    return typeof command === 'string' ? command : undefined;
  } catch {
    return undefined;
  }
}

/** Says why there is no record, and which option keeps it. */
export function missingFor(seen: RunExplanation, all: boolean): string {
  const { verdict, isLive } = seen;
  if (verdict === 'unreadable') return verdictView(seen, all).reason;
  if (isLive) return 'The run is not recorded yet.';
  if (verdict !== 'ended') return 'There is no record of the run.';
  return "The record of a run is deleted at its end. To keep it: `export const retention = { records: '1d' }` in the agent’s module, or `retention: { records }` of createExecutor.";
}

function usageOf({ record, outcome }: RunExplanation, { line }: OwnRun): UsageView {
  const ended = outcome ?? (line.status === 'ended' ? line.outcome : undefined);
  const known = record ?? ended ?? ('usage' in line ? line : undefined);
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, reasoningTokens = 0 } = known?.usage ?? {};
  const spend = known?.spend;
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens: cacheReadTokens,
    reasoningTokens,
    ...(spend ? { usd: spend.usd } : {}),
    models: record ? modelUses(record).map(modelUsage) : [],
  };
}

const amounts = ['tokens', 'usd', 'seconds'] as const;

/** What the budget says may come from a host's own one. */
function budgetOf({ budget }: RunExplanation): Pick<RecordView, 'budget'> {
  const { windowMs, limits, spent, reserved } = budget ?? {};
  const known = amounts.flatMap((kind) => {
    const limit = limits?.[kind];
    const used = (spent?.[kind] ?? 0) + (reserved?.[kind] ?? 0);
    return isAmount(limit) && isAmount(used) ? [{ kind, spent: used, limit: Number(limit) }] : [];
  });
  return known.length > 0 && isAmount(windowMs) ? { budget: { windowMs: Number(windowMs), amounts: known } } : {};
}

function modelUsage({ model, turns, usage, spend }: ModelUse): ModelUsage {
  const { inputTokens, outputTokens, cacheReadTokens } = usage;
  const usd = spend ? { usd: spend.usd } : {};
  return { model, turns, inputTokens, outputTokens, cachedInputTokens: cacheReadTokens, ...usd };
}

/** A reader of all runs sees the message of the error itself. */
function resultOf(outcome: RunOutput, all: boolean): NonNullable<RecordView['result']> {
  const { status, output, error } = endOfView(outcome);
  const own = all && outcome.error ? { code: outcome.error.code, message: outcome.error.message } : error;
  return { status, output, ...(own ? { error: own } : {}) };
}

/** Most runs below a run that are looked for. */
const SHOWN_CHILDREN = 64;

/** The runs that calls of the record began, those that it waits for, and those that are live: the last ones. */
async function childrenBelow(
  served: GrantedCall['served'],
  run: OwnRun,
  {
    seen: { record },
    facts,
    all,
  }: { readonly seen: RunExplanation; readonly facts: TranscriptFacts; readonly all: boolean },
): Promise<readonly ChildView[]> {
  const open = (record?.openStep?.calls ?? []).filter(({ name }) => beginsRun(name)).map(({ callId }) => callId);
  const found = new Map<string, string | undefined>();
  const born = { runId: run.runId, birth: record?.birth };
  for (const callId of [...facts.calls, ...open]) found.set(childRunId(born, callId), callId);
  for (const runId of childrenOf(run.line)) if (!found.has(runId)) found.set(runId, undefined);
  const wanted = [...found].slice(-SHOWN_CHILDREN);
  return Promise.all(
    wanted.map(async ([runId, callId]) => {
      const line = await lineOfChild(served, runId, { run, all });
      return { runId, ...(callId === undefined ? {} : { callId }), ...(line ? { line } : {}) };
    }),
  );
}

/** A run below another one names its root itself: a record may say that it waits for any run. */
async function lineOfChild(
  served: GrantedCall['served'],
  runId: string,
  { run, all }: { readonly run: OwnRun; readonly all: boolean },
): Promise<RunLine | undefined> {
  try {
    const found = await served.executor.find(runId);
    if (!found || (!all && found.parent?.rootRunId !== run.rootRunId)) return undefined;
    const line = runLine(found, { all, maxSteps: maxStepsOf(served, found.meta?.agentId ?? '') });
    return all ? line : withoutOwner(line);
  } catch (error) {
    const code = readProperty(error, 'code');
    return all ? runLine({ runId, status: 'quarantined', reason: `${code}: it cannot be read` }) : undefined;
  }
}
