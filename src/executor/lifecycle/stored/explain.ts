import { definitionOf } from '../../../agent/agent.ts';
import type { BudgetStanding } from '../../../budget/port.ts';
import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { type InterruptedRun, interruptedRun, quarantinedRun, type ReadableRun } from '../../../record/interrupted.ts';
import { ProgressRedaction } from '../../../record/redact-progress.ts';
import { LIVE_HERE } from '../../../record/verdict.ts';
import { traceIdIn } from '../../../run/attempt.ts';
import type { SentCommand } from '../../../run/command.ts';
import type { RunDefinition } from '../../../run/fields.ts';
import { type RunOutput, withoutId } from '../../../run/result.ts';
import { isAtRest } from '../../../run/waits/model-waits.ts';
import { isMarking } from '../../../store/capabilities.ts';
import type { RecordPart } from '../../../store/journal-port.ts';
import type { CheckpointStore } from '../../../store/port.ts';
import { loadPart } from '../../../store/reading/record-part.ts';
import { withDeadline } from '../../../values/deadline.ts';
import { hasCode } from '../../../values/error-data.ts';
import { checkKeys } from '../../../values/known-options.ts';
import { Redactor } from '../../../values/redact.ts';
import { programOf } from '../../../workflow/program.ts';
import { type WorkflowView, workflowView } from '../../../workflow/view.ts';
import type { ActiveRun, ExecutorServices } from '../../run/active-run.ts';
import { endOfFeed } from '../../services/event-feeds.ts';
import { Doctor, type RunDiagnosis } from './diagnose.ts';
import { findEntry, findQueued, liveOwner } from './find-run.ts';
import { isLive, type ListedRun, type StoredRunLine } from './list-runs.ts';
import { agentFor } from './recover-one-run.ts';
import type { StoredEntry } from './stored-run-pages.ts';

/** All that is known of one run. Texts are redacted as the option `redact` says. */
export interface RunExplanation {
  readonly runId: string;
  /**
   * What the next `recover()` of this executor does with the run, as `diagnose` says it. `ended`: nothing, it has ended. `queued`:
   * nothing, its turn in its conversation has not come.
   */
  readonly verdict: RunDiagnosis['verdict'] | 'ended' | 'queued';
  /** Why, in words, without the code. */
  readonly reason: string;
  /** The error code of the reason, if there is one. */
  readonly code?: string;
  /** Whether it stays as it is until a person, or a deploy, changes something. */
  readonly needsPerson: boolean;
  /**
   * The state of its machine, for example `phase(1).calling-tools`: of a run that is live in this process the present one, of
   * any other the one from which its record continues. Absent if the record cannot be read, or is not kept.
   */
  readonly state?: string;
  /** What is known of the machine of a workflow's run; absent = the run is an agent's. */
  readonly workflow?: WorkflowView;
  /** Whether it is live in this process. */
  readonly isLive: boolean;
  /** The trace of `pawl/otel`; absent = it has none. */
  readonly traceId?: string;
  /** The whole record, or the part that was asked for; absent if there is none, or it cannot be read. */
  readonly record?: RunCheckpoint;
  /** How many messages the record has; absent without one. */
  readonly messageCount?: number;
  /** How it ended; absent if it has not. */
  readonly outcome?: RunOutput;
  /** The process that works on it, and until when its claim is valid, wall clock, ms, if the store knows that. */
  readonly owner?: { readonly name: string; readonly until?: number };
  /** The commands that the run has not read yet: the oldest first. */
  readonly commands: readonly SentCommand[];
  /** What its caller has used of the budget; only if that was asked for, and the budget says it. */
  readonly budget?: BudgetStanding;
  /** What its agent is now; absent if this executor does not have the agent. */
  readonly agent?: { readonly definition: RunDefinition; readonly phases: readonly string[] };
}

/** The options of `executor.explain()`. */
export interface ExplainOptions {
  /**
   * The line of the run in `executor.list()`: its owner is not asked for again, which costs a list of the store. It may be a moment
   * old.
   */
  readonly listed?: ListedRun | undefined;
  /**
   * Reads of the messages only those from one index up to another one (excluded); the record then lacks its inputs and images, too.
   * Where the store can, that costs the same for a long record. Default: the whole record.
   */
  readonly messages?: { readonly from: number; readonly to: number } | undefined;
  /** Also asks the budget what the run's caller has used. Default `false`. */
  readonly budget?: boolean | undefined;
}

/** What an executor can do, by its store and its options. */
export interface ExecutorCapabilities {
  /** The events of runs are kept, so that any process can read them: `events`. */
  readonly journal: boolean;
  /** Runs rest in the store while they wait. */
  readonly waits: boolean;
  /** Commands reach runs of other processes: answers, `cancel`, `steer`. */
  readonly commands: boolean;
  /** The store can keep the records of runs that ended: `retention.records`. */
  readonly history: boolean;
  /** The store keeps conversations: `thread`. */
  readonly threads: boolean;
}

/** Returns what an executor can do. */
export function capabilitiesOf({ config: { store, journal } }: ExecutorServices): ExecutorCapabilities {
  return {
    journal: journal !== undefined,
    waits: store?.due !== undefined,
    commands: store?.commands !== undefined,
    history: store?.history !== undefined,
    threads: store?.threads !== undefined,
  };
}

/** Returns the change mark of an executor's store; undefined if it has none. @throws the store's own error */
export async function changeMarkOf({ config: { store } }: ExecutorServices): Promise<string | undefined> {
  return store && isMarking(store) ? store.changeMark() : undefined;
}

/**
 * Reads all that is known of one run, and changes nothing. A record that cannot be read is a part of the answer.
 * @throws the store's own error if it does not answer
 */
export async function explainRun(
  services: ExecutorServices,
  runId: string,
  options: ExplainOptions,
): Promise<RunExplanation | null> {
  checkKeys(options, { listed: true, messages: true, budget: true }, { of: 'executor.explain' });
  checkRange(options.messages);
  const { store, redact } = services.config;
  const live = services.registry.live(runId);
  const isHere = isLive(live);
  const found = store && (await readRun(services, { store, runId, ...options }));
  if (!found && !isHere) return explainEnded(services, runId);
  const seen: RunExplanation = {
    ...(found ?? { commands: [] }),
    runId,
    ...(isHere ? { verdict: 'live', reason: LIVE_HERE, needsPerson: false } : (found as Found).verdict),
    ...(isHere ? { state: live.summary.state, owner: { name: services.owner } } : {}),
    isLive: isHere,
    ...traceOf(isHere ? live.progress : found?.record, found?.outcome),
    ...workflowOf(services, { live: isHere ? live : undefined, record: found?.record }),
  };
  const whole = options.budget ? { ...seen, ...(await standingOf(services, seen)) } : seen;
  return redact ? redacted(whole, new Redactor(redact, 'record')) : whole;
}

/** An outcome may be kept longer than its record. */
function traceOf(fields: Pick<RunCheckpoint, 'trace'> | undefined, outcome?: RunOutput): { readonly traceId?: string } {
  const traceId = traceIdIn(fields?.trace) ?? outcome?.traceId;
  return traceId === undefined ? {} : { traceId };
}

/** A workflow that is live here says more than its record. */
function workflowOf(
  services: ExecutorServices,
  { live, record }: { readonly live: ActiveRun | undefined; readonly record: RunCheckpoint | undefined },
): Pick<RunExplanation, 'workflow'> {
  const fields = live?.progress ?? record;
  const agent = live?.agent ?? (record && agentFor(services, record.meta.agentId));
  const program = agent && programOf(agent);
  if (!fields || !(program || fields.workflow)) return {};
  return { workflow: workflowView(fields, { program, isOver: fields.outcome !== undefined }) };
}

/** A budget that fails, or does not answer, is the trouble of the next start, which asks it again. */
async function standingOf(
  { config }: ExecutorServices,
  { record }: Pick<RunExplanation, 'record'>,
): Promise<Pick<RunExplanation, 'budget'>> {
  const { budget, defaults, clock } = config;
  if (!record || !budget?.standing) return {};
  try {
    const asked = Promise.resolve(budget.standing(record.meta.callerId));
    return { budget: await withDeadline(asked, { ms: defaults.portMs, clock, what: 'budget.standing' }) };
  } catch {
    return {};
  }
}

type Judged = Pick<RunExplanation, 'verdict' | 'reason' | 'code' | 'needsPerson'>;
type Found = Pick<RunExplanation, 'state' | 'record' | 'messageCount' | 'outcome' | 'owner' | 'commands' | 'agent'> & {
  readonly verdict: Judged;
};

const unreadable = ['CHECKPOINT_CORRUPT', 'CHECKPOINT_TOO_NEW', 'KEY_MISMATCH'];

interface Wanted extends ExplainOptions {
  readonly store: CheckpointStore;
  readonly runId: string;
}

async function readRun(services: ExecutorServices, wanted: Wanted): Promise<Found | undefined> {
  const { store, runId, listed } = wanted;
  try {
    const record = await readRecord(services, wanted, false);
    if (record) {
      const entry = entryOf(store, listed) ?? (await findEntry(store, record.record));
      return asked(wanted, record, await openRun(services, { store, entry }, record.record));
    }
    const queued = await findQueued(store, runId);
    if (queued) return { ...ofRecord(services, queued), verdict: inItsThread, commands: [] };
    const kept = store.history ? await readRecord(services, wanted, true) : null;
    if (!kept) return undefined;
    const { outcome } = kept.record;
    const ended = outcome
      ? { outcome: withoutId(outcome), verdict: endedAs(outcome) }
      : { verdict: endedAs(undefined) };
    return asked(wanted, kept, { ...ofRecord(services, kept.record), ...ended, state: 'settled', commands: [] });
  } catch (error) {
    if (!unreadable.some((code) => hasCode(error, code))) throw error;
    const entry = quarantinedRun({ runId, updatedAt: 0 }, error);
    const verdict = await new Doctor(store, {}).lookAt({ entry, isResting: false });
    return { verdict: verdict as Judged, commands: [] };
  }
}

interface ReadRecord extends RecordPart {
  readonly isWhole?: true;
}

/** Reads what is asked for; but a host's `migrate` may look at each message. */
async function readRecord(
  { config }: ExecutorServices,
  { store, runId, messages }: Wanted,
  ended: boolean,
): Promise<ReadRecord | null> {
  if (messages && !config.migrate) return loadPart(store, runId, { ...messages, ended });
  const record = await store.load(runId, ended ? { ended } : {});
  return record && { record, messageCount: record.messages.length, isWhole: true };
}

/** What was found, with the messages that were asked for. */
function asked({ messages }: Wanted, { record, messageCount, isWhole }: ReadRecord, found: Found): Found {
  const isTooMuch = isWhole && messages;
  const part = isTooMuch ? { ...record, messages: record.messages.slice(messages.from, messages.to) } : record;
  return { ...found, record: part, messageCount };
}

/** Checks which messages are wanted. @throws {TypeError} */
function checkRange(messages: ExplainOptions['messages']): void {
  if (messages === undefined) return;
  const { from, to } = messages ?? {};
  if ([from, to].some((index) => !Number.isInteger(index) || index < 0))
    throw new TypeError('executor.explain: messages needs whole numbers `from` and `to`, not below 0');
}

const inItsThread: Judged = {
  verdict: 'queued',
  reason: 'it waits for its turn in its conversation',
  needsPerson: false,
};

function endedAs(outcome: Pick<RunOutput, 'status' | 'error'> | undefined): Judged {
  const { status, error } = outcome ?? {};
  const reason = status === undefined ? 'it has ended' : `it has ended: ${status}`;
  return { verdict: 'ended', reason, ...(error ? { code: error.code } : {}), needsPerson: false };
}

async function explainEnded(services: ExecutorServices, runId: string): Promise<RunExplanation | null> {
  const { store, redact } = services.config;
  const kept = store ? await endOfFeed(store, runId) : undefined;
  const outcome = kept ? withoutId(kept as never) : services.registry.ended(runId);
  if (!outcome || outcome.status === 'interrupted' || outcome.status === 'waiting') return null;
  const seen: RunExplanation = {
    runId,
    ...endedAs(outcome),
    outcome,
    ...traceOf(undefined, outcome),
    isLive: false,
    commands: [],
  };
  return redact ? redacted(seen, new Redactor(redact, 'record')) : seen;
}

/** A run that has not ended, or whose end is not delivered yet. */
async function openRun(
  services: ExecutorServices,
  { store, entry: found }: { readonly store: CheckpointStore; readonly entry: StoredEntry | undefined },
  record: RunCheckpoint,
): Promise<Found> {
  const { runId } = record.meta;
  const { entry, isResting = false } = found ?? {};
  const owner = entry && liveOwner(entry, services.owner);
  const until = owner === undefined ? null : ((await store.due?.heldUntil(runId)) ?? null);
  const attempts = (entry as ReadableRun | undefined)?.attempts ?? record.attempts;
  const listed = interruptedRun({ ...record, attempts }, owner) as ReadableRun;
  const doctor = doctorOf(services, store);
  const newer = record.outcome ? undefined : await newerDeployment(services, store, runId);
  const verdict = await doctor.lookAtRecord({ entry: listed, isResting, newer }, record);
  const { outcome } = record;
  return {
    ...ofRecord(services, record),
    verdict: { ...verdictIn(verdict) },
    ...(outcome ? { outcome: withoutId(outcome) } : {}),
    ...(owner === undefined ? {} : { owner: { name: owner, ...(until === null ? {} : { until }) } }),
    commands: await commandsOf(services, store, runId),
  };
}

/** Returns the deployment to which this one leaves a run; undefined = it leaves it to none. */
async function newerDeployment(
  { config: { deployment } }: ExecutorServices,
  store: CheckpointStore,
  runId: string,
): Promise<number | undefined> {
  const highest = deployment === undefined ? undefined : await store.due?.deploymentOf(runId);
  return (highest ?? 0) > (deployment ?? 0) ? (highest as number) : undefined;
}

/** A line of this executor's list as an entry of its store. */
function entryOf(store: CheckpointStore, listed: ListedRun | undefined): StoredEntry | undefined {
  if (!listed || listed.status === 'quarantined' || listed.updatedAt === undefined) return undefined;
  const { status, owner, ...entry } = listed as StoredRunLine;
  const standing = status === 'live' ? { owner } : { status };
  return {
    entry: { ...entry, ...standing } as InterruptedRun,
    isResting: status === 'waiting' && store.due !== undefined,
  };
}

function verdictIn({ verdict, reason, code, needsPerson }: Judged): Judged {
  return { verdict, reason, ...(code === undefined ? {} : { code }), needsPerson };
}

/** A process without any agent continues no run itself: it does not miss them. */
function doctorOf(services: ExecutorServices, store: CheckpointStore): Doctor {
  const { migrate, onUnknownOutcome, onDefinitionChange, clock, agents, palette, defaults } = services.config;
  const { seenAgents } = services;
  const hasAgents = agents.size > 0 || palette !== undefined || seenAgents.size > 0;
  return new Doctor(store, {
    migrate,
    onUnknownOutcome,
    onDefinitionChange,
    clock,
    maxAttempts: defaults.maxAttempts,
    ...(hasAgents ? { agentOf: (id: string) => agentFor(services, id) } : {}),
  });
}

/** A damaged command must not hide its run. */
async function commandsOf(
  { config }: ExecutorServices,
  store: CheckpointStore,
  runId: string,
): Promise<readonly SentCommand[]> {
  try {
    return (await store.commands?.inbox({ runId })) ?? [];
  } catch (error) {
    config.warn('command.read.failed', { runId, error });
    return [];
  }
}

function ofRecord(services: ExecutorServices, record: RunCheckpoint): Pick<Found, 'record' | 'state' | 'agent'> {
  const agent = agentFor(services, record.meta.agentId);
  const phases = (agent?.phases ?? []).map(({ name }) => name);
  return {
    record,
    state: stateIn(record, phases.length > 0),
    ...(agent ? { agent: { definition: definitionOf(agent), phases } } : {}),
  };
}

/** Returns the state of the machine from which a record continues. */
function stateIn(record: RunCheckpoint, hasPhases: boolean): string {
  const { outcome, openPhase, completedPhases, openStep } = record;
  if (outcome) return outcome.status === 'ok' ? 'completing' : 'failing';
  if (!openPhase && (hasPhases || completedPhases.length > 0)) return 'between-phases';
  const stage = openPhase ? `phase(${openPhase.index})` : 'running';
  if (isAtRest(record)) return `${stage}.waiting`;
  return openStep ? `${stage}.calling-tools` : `${stage}.entering`;
}

function redacted(seen: RunExplanation, redactor: Redactor): RunExplanation {
  const by = new ProgressRedaction(redactor);
  const { record, outcome, commands, reason } = seen;
  return {
    ...seen,
    reason: by.text(reason),
    ...(record ? { record: by.record(record) } : {}),
    ...(outcome ? { outcome: by.outcome(outcome) } : {}),
    commands: commands.map((sent) => ({ ...sent, command: by.json(sent.command) })),
  };
}
