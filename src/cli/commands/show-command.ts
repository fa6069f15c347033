import {
  type AuditedRunDetail,
  createAudit,
  type RunCheckpoint,
  type RunExplanation,
  type RunOutcome,
} from '../../index.ts';
import type { SentCommand } from '../../kit.ts';
import { listedStatus } from '../../record/listed-status.ts';
import type { RunVerdict } from '../../record/verdict.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { knownBy, loadAgentModule } from '../open/agent-module.ts';
import { controlExecutor } from '../open/control-executor.ts';
import { KnownModules } from '../open/known-modules.ts';
import { openExistingStore, type RunStore } from '../open/open-store.ts';
import { allRuns, loadRecord, pidOf, treeInStore } from '../open/stored-runs.ts';
import { exitCodes, Failure, lineOf } from '../ui/failure.ts';
import { PAWL } from '../ui/shell-words.ts';
import { type Audited, describeAudited, describeChildren, describeMachine, describeSteps } from './describe-audit.ts';
import {
  decisionsIn,
  describeLives,
  describeOutcome,
  describeRecord,
  describeUnreadable,
  recordedSteps,
  standingOf,
  type WaitingFacts,
} from './describe-run.ts';
import { unknownRunFailure, withModule } from './obstacle.ts';

/** Runs `pawl show`: prints the progress or the end of a run, and what its audit keeps. */
export const showCommand: CliCommand = async (context) => {
  const { args, output } = context;
  const [runId] = args.words;
  if (runId === undefined)
    throw new Failure(`\`pawl show\` needs the id of a run; \`${PAWL} list\` shows those that wait`);
  const store = await openExistingStore(args.store);
  const standing = await readStanding(context, store, runId);
  const audited = standing.unreadable ? undefined : await readAudit(context, store, runId);
  const found = { runId, ...standing, audited };
  if (!found.waiting && !found.outcome && !found.audited && !found.unreadable) throw unknownRunFailure(runId, store);
  if (args.json) output.printJson(document(found, store), 2);
  else print(context, found, store);
  await store.close();
  return exitCodes.ok;
};

interface Stored {
  readonly waiting: WaitingFacts | undefined;
  readonly outcome: RunOutcome | null;
  /** The record of a run that has ended, while it is kept. */
  readonly kept?: RunCheckpoint | null;
  /** Why its record cannot be read: it is damaged, or of a newer version. */
  readonly unreadable?: RunVerdict;
}

interface Found extends Stored {
  readonly runId: string;
  readonly audited: Audited | undefined;
}

async function readStanding(context: CommandContext, store: RunStore, runId: string): Promise<Stored> {
  const explained = await explain(context, store, runId);
  // A key that the command was not given is a wrong call: reading the record refuses it.
  if (explained?.verdict === 'unreadable' && explained.code !== 'KEY_MISMATCH')
    return { waiting: undefined, outcome: null, unreadable: verdictIn(explained, explained.verdict) };
  const record = await loadRecord(store, runId);
  if (!record)
    return { waiting: undefined, outcome: await store.outcomes.find(runId), kept: await readKeptRecord(store, runId) };
  const entries = await allRuns(store);
  const entry = entries.find((each) => each.runId === runId);
  const place = entry ? await treeInStore(store, entries).placeOf(entry) : ({ kind: 'own' } as const);
  const inbox = await inboxOf(context, store, runId);
  const module = moduleOf(context, store, runId);
  const why = explained ? whyIn(explained, context, { agentId: record.meta.agentId, pathOf: () => module }) : undefined;
  return { waiting: { record, entry, place, inbox, module, why, workflow: explained?.workflow }, outcome: null };
}

/** A record that cannot be read must not prevent the output of the end. */
async function readKeptRecord(store: RunStore, runId: string): Promise<RunCheckpoint | null> {
  return store.load(runId, { ended: true }).catch(() => null);
}

/** What an executor says of the run: with the module that `--agent` names, also whether its agent is there. */
async function explain({ args }: CommandContext, store: RunStore, runId: string): Promise<RunExplanation | null> {
  const module = args.agent === undefined ? undefined : await loadAgentModule(args.agent, { asksModels: false });
  const { migrate } = module?.options ?? {};
  try {
    const executor = controlExecutor(store, { ...(module && knownBy(module)), ...(migrate && { migrate }) });
    return await executor.explain(runId, { messages: { from: 0, to: 0 } });
  } catch (error) {
    throw new Failure(lineOf(error), { cause: error });
  }
}

/** Why the run does not continue. Without a named module it is that of `pawl resume`: the one of the run. */
function whyIn(
  explained: RunExplanation,
  { args }: CommandContext,
  started: Parameters<typeof withModule>[1],
): RunVerdict | undefined {
  const { verdict } = explained;
  if (verdict === 'ended' || verdict === 'queued') return undefined;
  const found = verdictIn(explained, verdict);
  return args.agent === undefined ? withModule(found, started) : found;
}

function verdictIn({ reason, code, needsPerson }: RunExplanation, verdict: RunVerdict['verdict']): RunVerdict {
  return { verdict, reason, ...(code === undefined ? {} : { code }), needsPerson };
}

/** A file that others can write must not prevent the output of the record. */
function moduleOf({ output }: CommandContext, { identity }: RunStore, runId: string): string | undefined {
  try {
    return new KnownModules().find({ store: identity, runId });
  } catch (error) {
    output.say(`pawl: warning: ${lineOf(error)}`);
    return undefined;
  }
}

/** The commands that the run has not processed yet. A damaged one must not prevent the output of the record. */
async function inboxOf({ output }: CommandContext, store: RunStore, runId: string): Promise<readonly SentCommand[]> {
  try {
    return await store.commands.inbox({ runId });
  } catch (error) {
    output.say(`pawl: warning: the commands to the run cannot be read: ${lineOf(error)}`);
    return [];
  }
}

/** The most descendants that are shown. */
const MOST_DESCENDANTS = 200;

/** What cannot be read for the audit must not prevent the output of the rest. */
async function readAudit({ output }: CommandContext, store: RunStore, runId: string): Promise<Audited | undefined> {
  try {
    const audit = createAudit({ store });
    const run = await audit.run(runId);
    const tree = run && (await audit.tree(runId, { limit: MOST_DESCENDANTS }));
    return run ? { run, children: tree?.children ?? [] } : undefined;
  } catch (error) {
    output.say(`pawl: warning: ${lineOf(error)}`);
    return undefined;
  }
}

function document({ runId, waiting, outcome, kept, unreadable, audited }: Found, store: RunStore) {
  const audit = audited ? { audit: audited } : {};
  if (waiting) {
    const { record, entry, inbox, module, workflow } = waiting;
    const commands = inbox.map(({ command }) => command);
    const pid = pidOf(entry);
    const status = entry ? listedStatus(entry) : 'interrupted';
    const known = { ...(pid === undefined ? {} : { pid }), ...(module === undefined ? {} : { module }) };
    const machine = workflow ? { workflow } : {};
    return { runId, status, ...standingOf(waiting, store), ...known, ...machine, record, commands, ...audit };
  }
  if (unreadable) return { runId, status: unreadable.verdict, why: unreadable };
  const retries = kept?.retries ? { retries: kept.retries } : {};
  return { runId, status: 'ended', outcome, ...retries, ...audit };
}

/** One line for each field; below them the answer, as the model wrote it. */
function print({ output }: CommandContext, found: Found, store: RunStore): void {
  for (const line of describe(found, store)) output.print(line);
  const text = found.waiting
    ? ''
    : (found.outcome?.output ?? found.audited?.run.output ?? '') || dataText(found.outcome);
  if (text !== '') output.printText(`\n${text}`);
}

/** The answer of a workflow is the output of its machine. */
function dataText(outcome: RunOutcome | null): string {
  return outcome?.data === undefined ? '' : JSON.stringify(outcome.data, null, 2);
}

function describe({ runId, waiting, outcome, kept, unreadable, audited }: Found, store: RunStore): string[] {
  const children = audited ? describeChildren(audited) : [];
  if (waiting) return [...describeRecord(waiting, store), ...children];
  if (unreadable) return describeUnreadable(runId, unreadable);
  const known = audited ? describeAudited(audited.run, outcome) : [];
  const ended = known.length > 0 || !outcome ? known : describeOutcome(outcome);
  const decisions = kept ? decisionsIn(kept) : [];
  const lives = describeLives(kept ?? outcome ?? {});
  return [
    ...ended,
    ...lives,
    ...describeMachine(audited?.run, kept),
    ...stepsOf(audited && { ...audited.run, ...(outcome && { iterations: outcome.iterations }) }, kept),
    ...decisions,
    ...children,
  ];
}

/** The events of a run say more of its steps than its record, but may be kept for a part of them only. */
function stepsOf(run: AuditedRunDetail | undefined, kept: RunCheckpoint | null | undefined): string[] {
  if (kept && !kept.workflow && (run?.steps.length ?? 0) < kept.iteration) return ['', ...recordedSteps(kept)];
  return run ? describeSteps(run) : [];
}
