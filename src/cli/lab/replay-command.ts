import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Agent, createExecutor, type Skill, type Tool } from '../../index.ts';
import {
  type LabFile,
  type RecordedRun,
  type ReplayOptions,
  type ReplayReport,
  readRun,
  readRuns,
  replay,
} from '../../lab/index.ts';
import { hasCode } from '../../values/error-data.ts';
import type { Arguments } from '../arguments.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { type AgentModule, loadAgentModule } from '../open/agent-module.ts';
import { openExistingStore } from '../open/open-store.ts';
import { exitCodes, Failure, oneLine } from '../ui/failure.ts';
import { shortened } from '../ui/format.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';
import { fileFailure } from './files-commands.ts';

/** Runs `pawl replay`: runs recorded runs again with the agent of a module, and says what differs. */
export const replayCommand: CliCommand = async ({ args, output }) => {
  const [from] = args.words;
  if (from === undefined || args.agent === undefined)
    throw new Failure(
      `\`pawl replay\` needs a file or the id of a run, and --agent <module>: see \`${PAWL} replay --help\``,
    );
  const module = await loadAgentModule(args.agent, { asksModels: args.liveModel });
  if (module.workflow) throw new Failure(`${args.agent} exports a workflow; only runs of agents are replayed`);
  const options = optionsOf(args, module);
  const told = { runs: 0, isAllWell: true };
  const onDamaged = ({ message }: LabFile) => {
    told.isAllWell = false;
    output.say(`pawl: damaged: ${message}`);
  };
  try {
    for await (const run of runsOf(from, { args, module, onDamaged })) {
      if (run.parent && run.agentId !== module.agent.id) continue;
      const report = await replay(run, options);
      told.runs += 1;
      if (args.liveModel ? report.status !== 'ok' : !report.same) told.isAllWell = false;
      print({ args, output }, report);
    }
  } catch (error) {
    throw fileFailure(error, from);
  }
  if (told.runs === 0 && told.isAllWell) throw new Failure(`there is no run to replay in ${quoted(from)}`);
  return told.isAllWell ? exitCodes.ok : exitCodes.failed;
};

interface Reading {
  readonly args: Arguments;
  readonly module: AgentModule;
  readonly onDamaged: (error: LabFile) => void;
}

async function* runsOf(from: string, { args, module, onDamaged }: Reading): AsyncGenerator<RecordedRun, void> {
  if (statSync(from, { throwIfNoEntry: false })?.isFile()) return yield* readRuns(resolve(from), { onDamaged });
  const store = await openExistingStore(args.store, module.codec);
  try {
    yield await readRun(createExecutor({ store, agents: [module.agent] }), from);
  } catch (error) {
    if (!hasCode(error, 'RUN_NOT_FOUND')) throw error;
    throw new Failure(`there is neither a file nor a run ${quoted(from)} in ${store.path}`, { cause: error });
  } finally {
    await store.close();
  }
}

function optionsOf({ liveModel, tools, onMiss }: Arguments, module: AgentModule): ReplayOptions {
  const { agent } = module;
  return {
    agent: {
      ...agent,
      ...(Array.isArray(agent.tools) ? { tools: agent.tools.map((entry) => toolOf(entry, module)) } : {}),
    },
    agents: entriesOf<Agent>('agent', agent.subAgents, module),
    skills: entriesOf<Skill>('skill', agent.skills, module),
    // An agent may have a model of its own, and its module no other.
    ...(liveModel ? { model: module.models ?? (() => undefined) } : {}),
    // What is not one of the words is refused by `replay`, with the words.
    ...(tools === undefined ? {} : { tools: tools as 'strict' }),
    ...(onMiss === undefined ? {} : { onMiss: onMiss as 'error' }),
  };
}

/** An agent may name tools that its module exports. */
function toolOf(entry: Tool | string, { tools }: AgentModule): Tool | string {
  return typeof entry === 'string' ? (tools.find(({ name }) => name === entry) ?? entry) : entry;
}

function entriesOf<Entry>(
  kind: 'agent' | 'skill',
  names: readonly string[] = [],
  { options: { ports } }: AgentModule,
): readonly Entry[] {
  return names.flatMap((name) => (ports.palette?.resolve(kind as 'agent', name) as Entry | null) ?? []);
}

function print({ args, output }: Pick<CommandContext, 'args' | 'output'>, report: ReplayReport): void {
  if (args.json) output.printJson(report);
  else output.print(`${report.same ? 'same' : 'differs'}  ${oneLine(report.runId)}${described(report)}`);
}

/** What differs, was missed, or drifted, in a line. */
function described({ difference, status, error, missed, drift, unused }: ReplayReport): string {
  const parts = [
    `${status}${error ? ` (${error.code})` : ''}`,
    ...(difference ? [`step ${difference.step}: ${partsOf(difference)}`] : []),
    ...(missed.length > 0 ? [`missed ${missed.map(({ step, name }) => `${name} (step ${step})`).join(', ')}`] : []),
    ...(drift.length > 0 ? [`drifted ${drift.map(({ step, name }) => `${name} (step ${step})`).join(', ')}`] : []),
    ...(unused.length > 0 ? [`${unused.length} recorded calls not made`] : []),
  ];
  return `  ${oneLine(parts.join('; '))}`;
}

/** The most characters of a text that differs. */
const MAX_CHARS = 100;

/** The first parts in which two messages differ, from a little before the place where they do. */
function partsOf({ recorded, replayed }: NonNullable<ReplayReport['difference']>): string {
  const [was = [], is = []] = [recorded, replayed].map((message) => (message ? wordsOf(message.content) : []));
  const at = Math.max(
    0,
    was.findIndex((words, i) => words !== is[i]),
  );
  const [one, other] = [was[at] ?? 'nothing', is[at] ?? 'nothing'];
  let from = 0;
  while (from < one.length && one[from] === other[from]) from += 1;
  const begin = from < MAX_CHARS / 2 ? 0 : from - MAX_CHARS / 4;
  return [one, other].map((text) => `${begin > 0 ? '…' : ''}${shortened(text.slice(begin), MAX_CHARS)}`).join(' → ');
}

function wordsOf(content: NonNullable<NonNullable<ReplayReport['difference']>['recorded']>['content']): string[] {
  if (typeof content === 'string') return [content];
  return content.map((part) => {
    if (part.type === 'text') return part.text;
    if (part.type === 'tool-call') return `${part.toolName}(${JSON.stringify(part.input)})`;
    return part.type === 'tool-result' ? `${part.toolName}: ${JSON.stringify(part.output)}` : JSON.stringify(part);
  });
}
