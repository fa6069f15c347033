import {
  type AuditedRunDetail,
  createAudit,
  type RunCheckpoint,
  type RunOutcome,
  type WorkflowView,
} from '../../index.ts';
import type { SentCommand } from '../../kit.ts';
import { listedStatus } from '../../record/listed-status.ts';
import type { Command, CommandContext } from '../command.ts';
import { controlExecutor, workflowsIn } from '../open/control-executor.ts';
import { KnownModules } from '../open/known-modules.ts';
import { openExistingStore, type RunStore } from '../open/open-store.ts';
import { allRuns, loadRecord, pidOf, treeIn } from '../open/stored-runs.ts';
import { exitCodes, Failure, lineOf } from '../ui/failure.ts';
import { PAWL } from '../ui/shell-words.ts';
import { type Audited, describeAudited, describeChildren, describeSteps } from './describe-audit.ts';
import { describeOutcome, describeRecord, recordedSteps, type Waiting } from './describe-run.ts';
import { unknownRun } from './obstacle.ts';

/** Runs `pawl show`: prints the progress or the end of a run, and what its audit keeps. */
export const showCommand: Command = async (context) => {
  const { args, output } = context;
  const [runId] = args.words;
  if (runId === undefined)
    throw new Failure(`\`pawl show\` needs the id of a run; \`${PAWL} list\` shows those that wait`);
  const store = await openExistingStore(args.store);
  const found = {
    runId,
    ...(await readStanding(context, store, runId)),
    audited: await readAudit(context, store, runId),
  };
  if (!found.waiting && !found.outcome && !found.audited) throw unknownRun(runId, store);
  if (args.json) output.printJson(document(found), 2);
  else print(context, found, store);
  await store.close();
  return exitCodes.ok;
};

interface Stored {
  readonly waiting: Waiting | undefined;
  readonly outcome: RunOutcome | null;
  /** The record of a run that has ended, while it is kept. */
  readonly kept?: RunCheckpoint | null;
}

interface Found extends Stored {
  readonly runId: string;
  readonly audited: Audited | undefined;
}

async function readStanding(context: CommandContext, store: RunStore, runId: string): Promise<Stored> {
  const record = await loadRecord(store, runId);
  if (!record)
    return { waiting: undefined, outcome: await store.outcome(runId), kept: await readKeptRecord(store, runId) };
  const entries = await allRuns(store);
  const entry = entries.find((each) => each.runId === runId);
  const place = entry ? await treeIn(store, entries).placeOf(entry) : ({ kind: 'own' } as const);
  const inbox = await inboxOf(context, store, runId);
  const workflow = await workflowOf(context, store, record);
  return { waiting: { record, entry, place, inbox, module: moduleOf(context, store, runId), workflow }, outcome: null };
}

/** A record that cannot be read must not prevent the output of the end. */
async function readKeptRecord(store: RunStore, runId: string): Promise<RunCheckpoint | null> {
  return store.load(runId, { ended: true }).catch(() => null);
}

/** What a workflow's record says of its machine; and with the module of the workflow, what the machine itself says. */
async function workflowOf(
  { args }: CommandContext,
  store: RunStore,
  { workflow, meta }: RunCheckpoint,
): Promise<WorkflowView | undefined> {
  if (!workflow) return undefined;
  const workflows = await workflowsIn(args);
  try {
    const executor = controlExecutor(store, { workflows });
    return (await executor.explain(meta.runId, { messages: { from: 0, to: 0 } }))?.workflow;
  } catch (error) {
    throw new Failure(lineOf(error), { cause: error });
  }
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
    return await store.inbox({ runId });
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

function document({ runId, waiting, outcome, audited }: Found) {
  const audit = audited ? { audit: audited } : {};
  if (waiting) {
    const { record, entry, inbox, module, workflow } = waiting;
    const commands = inbox.map(({ command }) => command);
    const pid = pidOf(entry);
    const status = entry ? listedStatus(entry) : 'interrupted';
    const known = { ...(pid === undefined ? {} : { pid }), ...(module === undefined ? {} : { module }) };
    const machine = workflow ? { workflow } : {};
    return { runId, status, ...known, ...machine, record, commands, ...audit };
  }
  return { runId, status: 'ended', outcome, ...audit };
}

/** One line for each field; below them the answer, as the model wrote it. */
function print({ output }: CommandContext, found: Found, store: RunStore): void {
  for (const line of describe(found, store)) output.print(line);
  const text = found.waiting ? '' : (found.outcome?.output ?? found.audited?.run.output ?? '');
  if (text !== '') output.printText(`\n${text}`);
}

function describe({ waiting, outcome, kept, audited }: Found, store: RunStore): string[] {
  const children = audited ? describeChildren(audited) : [];
  if (waiting) return [...describeRecord(waiting, store), ...children];
  const known = audited ? describeAudited(audited.run, outcome?.traceId) : [];
  const ended = known.length > 0 || !outcome ? known : describeOutcome(outcome);
  return [...ended, ...stepsOf(audited?.run, kept), ...children];
}

/** The events of a run say more of its steps than its record, but may be kept for a part of them only. */
function stepsOf(run: AuditedRunDetail | undefined, kept: RunCheckpoint | null | undefined): string[] {
  if (kept && !kept.workflow && (run?.steps.length ?? 0) < kept.iteration) return ['', ...recordedSteps(kept)];
  return run ? describeSteps(run) : [];
}
