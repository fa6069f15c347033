import { type Agent, agentFrom, definitionOf } from '../../../agent/agent.ts';
import { phaseFactsOf } from '../../../agent/phase.ts';
import { type RunCheckpoint, toResumeState } from '../../../record/checkpoint.ts';
import { cutAfter, forkedRecord } from '../../../record/fork.ts';
import { ProgressRedaction } from '../../../record/redact-progress.ts';
import { ownStepsFrom, stepsIn, withPhases } from '../../../record/steps.ts';
import { identityOf } from '../../../run/field-rows.ts';
import { births, bornRunOf, checkHostRunId, fingerprintOf, outcomeIdOf } from '../../../run/identity.ts';
import { outcomeOf } from '../../../run/outcome.ts';
import { isSamePipeline } from '../../../run/pipeline.ts';
import { beginProgress } from '../../../run/progress.ts';
import { type Labels, labelsOf } from '../../../run/request.ts';
import type { RunOutcome } from '../../../run/result.ts';
import { enterHistory, resumeProgress } from '../../../run/resume.ts';
import type { KeepingStore } from '../../../store/history-port.ts';
import { toolboxOf } from '../../../tool/toolbox.ts';
import { sha256 } from '../../../values/digest.ts';
import {
  AgentNotFoundError,
  DefinitionChangedError,
  ForkEffectsError,
  RunNotFoundError,
  RunOwnedElsewhereError,
  UnsupportedError,
} from '../../../values/errors.ts';
import { canonicalJson, type JsonValue } from '../../../values/json.ts';
import { checkKeys, checkWord, type KnownKeys, kindOf } from '../../../values/known-options.ts';
import { enterStored, type Message } from '../../../values/message.ts';
import { Redactor } from '../../../values/redact.ts';
import { metaFor } from '../../host/request.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { handleOf, type Run } from '../../run/handle.ts';
import { isAskedRun } from '../../run/record/same-request.ts';
import { claimOptionsOf } from '../../run/record/stored-run.ts';
import { SKILL } from '../../services/palette-entries.ts';
import { launch } from '../start.ts';
import { historyStoreOf } from './history.ts';
import { agentFor } from './recover-one-run.ts';

/** The options of `executor.fork()`. */
export interface ForkOptions {
  /** How many steps of the origin the fork keeps: 0 to all of them. */
  readonly at: number;
  /** The id of the fork; default: a new one. A second call with the same id and request finds the first fork. */
  readonly runId?: string;
  /** Another definition of the agent, from the cut on. Default: the agent of the origin, as this executor has it. */
  readonly agent?: Agent;
  /**
   * Changes what the fork begins with: gets a copy of the kept messages, and returns them with other texts of persons, other results,
   * or more messages of a person at the end.
   */
  edit?(messages: Message[]): readonly Message[];
  /**
   * What its calls with an effect do. `live`: they run. `ask`: a person decides about each. `refuse`: none runs, and the model reads that.
   * Needed where the agent, or one that it may call, has a tool whose effect is not `read`. It holds for the children of the fork too.
   */
  readonly effects?: 'live' | 'ask' | 'refuse';
  /** Labels besides those of the origin. */
  readonly labels?: Labels;
}

const optionKeys: KnownKeys<ForkOptions> = {
  at: true,
  runId: true,
  agent: true,
  edit: true,
  effects: true,
  labels: true,
};

/**
 * Starts another run with the first steps of a stored one, for `executor.fork`.
 * @throws {TypeError} @throws {RUN_NOT_FOUND} @throws {FORK_EFFECTS} @throws {DEFINITION_CHANGED} @throws {AGENT_NOT_FOUND}
 * @throws {UNSUPPORTED} for a run of a workflow, or where the store keeps no records of ended runs
 */
export async function forkRun(services: ExecutorServices, originId: string, options: ForkOptions): Promise<Run> {
  const { runId, agent, record } = await prepare(services, originId, options);
  const { meta, inputs = {}, images = [], earlier = [], fingerprint = '' } = record;
  const { prompt, callerId, channelId, guildId } = meta;
  const asked = { prompt, callerId, channelId, guildId, parentRunId: '', inputs, images, earlier };
  const request = { runId, ...asked, fingerprint, labels: record.labels ?? {} };
  const asker = { request, agentId: agent.id, isNewId: false, redact: services.config.redact };
  const live = services.registry.live(runId);
  if (live) {
    await live.life.accepted.promise;
    if (isAskedRun(asker, live)) return handleOf(live, 'joined');
  }
  return launch(services, agent, { seed: { request, isNewId: false, origin: 'started', forked: record }, options: {} });
}

/**
 * Stores the first record of a fork, which any process with its agent continues.
 * @returns its id @throws the errors of `forkRun`, and {RUN_OWNED_ELSEWHERE}
 */
export async function forkStored(services: ExecutorServices, originId: string, options: ForkOptions): Promise<string> {
  const { store, runId, record } = await prepare(services, originId, options);
  const claim = await store.claim(runId, services.owner, services.config.defaults.leaseMs, claimOptionsOf(services));
  if (!claim) throw new RunOwnedElsewhereError(`another process works on run ${runId}`);
  // Asked for in one turn: stores that write in groups make one commit of it.
  await Promise.all([store.save(record, { claim }), store.release(claim, { attempts: 0 })]);
  services.config.hints.tell(runId);
  return runId;
}

async function prepare(services: ExecutorServices, originId: string, options: ForkOptions) {
  checkKeys(options, optionKeys, { of: 'executor.fork' });
  checkWord('executor.fork: effects', options.effects, ['live', 'ask', 'refuse']);
  if (options.edit !== undefined && typeof options.edit !== 'function')
    throw new TypeError(`executor.fork: edit must be a function, not ${kindOf(options.edit)}`);
  const runId = checkHostRunId(options.runId ?? services.config.newId());
  const store = historyStoreOf(services);
  const origin = await originOf(store, originId, options.at);
  const agent = agentOf(services, origin, options.agent);
  return { store, runId, agent, record: await firstRecord(services, store, { origin, agent, runId, options }) };
}

async function originOf(store: KeepingStore, runId: string, at: unknown): Promise<RunCheckpoint> {
  const found = await store.load(runId, { ended: true });
  if (!found)
    throw new RunNotFoundError(
      `run ${runId} cannot be forked: there is no record of it, or not any more (retention: { records: '7d' } keeps those of runs that end)`,
    );
  if (found.workflow) throw new UnsupportedError(`run ${runId} is a run of a workflow: it has no steps to fork at`);
  const record = withPhases(found);
  // Records of earlier versions do not say where a phase begins, and their turns of threads keep what the thread shows.
  const isShown = record === found && record.thread !== undefined && record.outcome !== undefined;
  if (record.completedPhases.some(({ from }) => from === undefined || isShown))
    throw new UnsupportedError(`run ${runId} does not keep the messages of its finished phases: it cannot be forked`);
  const most = stepsIn(record).length;
  if (Number.isInteger(at) && (at as number) >= 0 && (at as number) <= most) return record;
  throw new TypeError(`executor.fork: at must be 0 to ${most}, the steps of run ${runId}, not ${String(at)}`);
}

/** Returns the agent of a fork. @throws {AGENT_NOT_FOUND} @throws {TypeError} */
function agentOf(
  services: ExecutorServices,
  { meta: { runId, agentId } }: RunCheckpoint,
  given: Agent | undefined,
): Agent {
  if (given !== undefined) return agentFrom(given, 'executor.fork: agent is');
  const known = agentFor(services, agentId);
  if (known) return known;
  throw new AgentNotFoundError(
    `run ${runId} is of agent ${agentId}, which this executor does not have: give it as agent`,
  );
}

interface Forking {
  readonly origin: RunCheckpoint;
  readonly agent: Agent;
  readonly runId: string;
  readonly options: ForkOptions;
}

async function firstRecord(
  services: ExecutorServices,
  store: KeepingStore,
  { origin, agent, runId, options }: Forking,
): Promise<RunCheckpoint> {
  const { config } = services;
  const { at, edit, effects } = options;
  const kept = origin.messages.slice(0, cutAfter(origin, at)).map(enterStored);
  const messages = edit ? edited(kept, edit) : kept;
  const labels = { ...origin.labels, ...labelsOf(options.labels ?? {}) };
  const earlier = await earlierOf(store, origin);
  const { callerId, channelId, guildId } = origin.meta;
  const prompt = edit ? promptIn(messages[ownStepsFrom(origin)]) : origin.meta.prompt;
  const { inputs = {}, images = [] } = origin;
  const request = { runId, prompt, callerId, channelId, guildId, parentRunId: '', inputs, images, earlier, labels };
  const of = { runId: origin.meta.runId, birth: origin.birth ?? '', at, effects: effects ?? '' };
  const changed = edit ? sha256(canonicalJson(messages as unknown as JsonValue)) : '';
  const fingerprint = sha256(canonicalJson([fingerprintOf({ ...request, agentId: agent.id }), of, changed]));
  const record = forkedRecord(origin, {
    ...{ at, labels, fingerprint, messages, earlier, birth: births.make(runId), now: config.clock.now() },
    meta: metaFor(agent, request, config.defaults.model),
    definition: definitionOf(agent),
    effects: effects === 'live' ? undefined : effects,
    isEdited: edit !== undefined,
  });
  if (!isSamePipeline(record, phaseFactsOf(agent.phases, 1), at > 0)) {
    const why = `the first phases of agent ${agent.id} are not those that run ${origin.meta.runId} has finished`;
    throw new DefinitionChangedError(`${why}: fork at an earlier step`);
  }
  const phase = record.openPhase?.index ?? record.completedPhases.length;
  if (effects === undefined && mayHaveEffects(services, agent, phase)) {
    const which = `agent ${agent.id}, or one that it may call, has tools whose effect is not read`;
    throw new ForkEffectsError(
      `${which}: say what their calls do in the fork, with effects: 'live', 'ask' or 'refuse'`,
    );
  }
  const first = isWholeAnswer(origin, options) ? { ...record, outcome: outcomeIn(record, origin) } : record;
  return config.redact ? new ProgressRedaction(new Redactor(config.redact, 'record')).record(first) : first;
}

/** The first message of a run is its prompt: an edit may have changed it. */
function promptIn(opening: Message | undefined): string {
  const parts = typeof opening?.content === 'string' ? [] : (opening?.content ?? []);
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
}

/** Whether a fork keeps all of a run that has its answer: then it has the same one, without the model. */
function isWholeAnswer(origin: RunCheckpoint, { at, edit }: ForkOptions): boolean {
  return origin.outcome?.status === 'ok' && edit === undefined && at === stepsIn(origin).length;
}

function outcomeIn(record: RunCheckpoint, { outcome }: RunCheckpoint): RunOutcome {
  const { meta, definition = { version: '', hash: '' } } = record;
  const resumed = resumeProgress(beginProgress(meta, definition), toResumeState(record));
  const progress = { ...resumed, ...identityOf(record) };
  const data = outcome?.data as JsonValue | undefined;
  const outcomeId = outcomeIdOf(bornRunOf(record), 1);
  const told = { durable: true, saveErrors: 0, outcomeId };
  return outcomeOf(progress, { status: 'ok', ...(data === undefined ? {} : { data }) }, told);
}

/** A turn of a thread has its earlier turns in their own records. */
async function earlierOf(
  store: KeepingStore,
  { thread, earlier = [], meta }: RunCheckpoint,
): Promise<readonly Message[]> {
  if (!thread || !store.threads) return earlier;
  return store.threads.history({ callerId: meta.callerId, id: thread.id }, thread.upTo);
}

/** Returns what an edit makes of the kept messages. @throws {TypeError} for messages that are no transcript with the same answers @throws what `edit` throws */
function edited(kept: readonly Message[], edit: NonNullable<ForkOptions['edit']>): readonly Message[] {
  const given: unknown = edit(structuredClone(kept) as Message[]);
  const of = 'executor.fork: edit must return';
  if (!Array.isArray(given)) throw new TypeError(`${of} a list of messages, not ${kindOf(given)}`);
  const messages = given as readonly Message[];
  try {
    enterHistory(messages);
  } catch (cause) {
    throw new TypeError(`${of} a valid transcript: ${(cause as Error).message}`, { cause });
  }
  for (const [i, message] of messages.entries()) {
    const before = kept[i];
    const isKept = before ? message.role === before.role : message.role === 'user';
    if (!isKept || (message.role === 'assistant' && !isSame(message, before)))
      throw new TypeError(
        `${of} the answers of the model as they are, and only messages of a person at the end (messages[${i}])`,
      );
  }
  if (messages.length < kept.length) throw new TypeError(`${of} all ${kept.length} messages, not ${messages.length}`);
  return messages.map((message, i) => (kept[i] && isSame(message, kept[i]) ? kept[i] : enterStored(message)));
}

const textOf = (message: Message) => canonicalJson(message as unknown as JsonValue);
const isSame = (message: Message, before: Message | undefined) =>
  before !== undefined && textOf(message) === textOf(before);

/**
 * Returns whether a run of an agent may have an effect from a phase on: a tool of it, of a skill or of an agent that it may call is not
 * `read`, or is not known here.
 */
function mayHaveEffects(services: ExecutorServices, agent: Agent, phase = 0): boolean {
  return hasEffects(services, agent, { phase, seen: new Set() });
}

function hasEffects(
  services: ExecutorServices,
  agent: Agent,
  { phase, seen }: { readonly phase: number; readonly seen: Set<string> },
): boolean {
  // An agent that is called again begins at its first phase.
  const visit = `${phase} ${agent.id}`;
  if (seen.has(visit)) return false;
  seen.add(visit);
  const rest = agent.phases?.slice(phase).filter(({ bare }) => !bare);
  if (rest?.length === 0) return false;
  if (
    ownEffects(services, agent, rest?.every(({ tools }) => tools) ? rest.flatMap(({ tools = [] }) => tools) : undefined)
  )
    return true;
  const below = [...(agent.subAgents ?? []), ...(agent.skills ?? []).map((name) => SKILL + name)];
  return below.some((id) => {
    const called = services.config.agents.get(id) ?? services.palette.agentById(id);
    return called === undefined || hasEffects(services, called, { phase: 0, seen });
  });
}

/** Returns whether a tool of an agent itself may have an effect. @param names of those that its phases may use; undefined = all */
function ownEffects({ config }: ExecutorServices, agent: Agent, names: readonly string[] | undefined): boolean {
  try {
    const { facts } = toolboxOf(agent.tools, config.tools);
    return Object.entries(facts).some(([name, { effect }]) => effect !== 'read' && (names?.includes(name) ?? true));
  } catch {
    // Its tools cannot be read now: a later start may find any.
    return true;
  }
}
