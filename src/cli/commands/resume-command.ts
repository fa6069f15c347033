import { randomUUID } from 'node:crypto';
import type { CliCommand, CommandContext } from '../command.ts';
import { type AgentModule, loadAgentModule } from '../open/agent-module.ts';
import { sharedCodec } from '../open/codec-export.ts';
import { openExistingStore } from '../open/open-store.ts';
import { oneOf } from '../option-values.ts';
import { Failure } from '../ui/failure.ts';
import { PAWL, quoted } from '../ui/shell-words.ts';
import { Resumption } from './resumption.ts';

/** Runs `pawl resume`: continues one run, or all interrupted ones. */
export const resumeCommand: CliCommand = (context) => {
  const { words, agent } = context.args;
  const [runId] = words;
  return goOn(context, agent === undefined ? [] : [agent], (resumption) =>
    runId === undefined ? resumption.all() : resumption.one(runId),
  );
};

/** Runs `pawl retry`: continues a run that ended badly. */
export const retryCommand: CliCommand = (context) => {
  const { words, agent } = context.args;
  const [runId] = words;
  if (runId === undefined)
    throw new Failure(`\`pawl retry\` needs the id of a run; \`${PAWL} list --all\` lists those that ended`);
  return goOn(context, agent === undefined ? [] : [agent], (resumption) => resumption.retry(runId));
};

/** Runs `pawl fork`: starts another run with the first steps of a stored one. */
export const forkCommand: CliCommand = (context) => {
  const { words, agent, at, effects, runId = randomUUID() } = context.args;
  const [origin] = words;
  if (origin === undefined || at === undefined)
    throw new Failure(
      `\`pawl fork\` needs the id of a run and --at, the number of steps to keep; \`${PAWL} show\` says how many there are`,
    );
  const how = effects === undefined ? {} : { effects: oneOf('effects', effects, ['live', 'ask', 'refuse']) };
  const options = { at: /^\d+$/.test(at) ? Number(at) : Number.NaN, ...how };
  return goOn(context, agent === undefined ? [] : [agent], (resumption) => resumption.fork({ origin, runId, options }));
};

/** Runs `pawl recover`: continues all interrupted runs, or those of the named agents. */
export const recoverCommand: CliCommand = (context) =>
  goOn(context, context.args.words, (resumption) => resumption.all());

async function goOn(
  context: CommandContext,
  files: readonly string[],
  work: (resumption: Resumption) => Promise<number>,
): Promise<number> {
  const modules = await modulesOf(files);
  const store = await openExistingStore(context.args.store, sharedCodec(modules.values()));
  const resumption = new Resumption(context, { store, modules });
  const exitCode = await work(resumption);
  await resumption.session.close();
  return exitCode;
}

/** By the ids of their agents. @throws {Failure} if two of them define the same agent */
async function modulesOf(files: readonly string[]): Promise<ReadonlyMap<string, AgentModule>> {
  const modules = new Map<string, AgentModule>();
  for (const file of files) {
    const module = await loadAgentModule(file);
    const { id } = module.agent;
    const other = modules.get(id);
    if (other)
      throw new Failure(`${other.path} and ${module.path} both define the agent ${quoted(id)}; name one of them`);
    modules.set(id, module);
  }
  return modules;
}
