import { statSync } from 'node:fs';
import { diagnose, type Migrate, type RunDiagnosis } from '../../../index.ts';
import type { Command, CommandContext } from '../../command.ts';
import { type AgentModule, loadAgentModule } from '../../open/agent-module.ts';
import { sharedCodec } from '../../open/codec-export.ts';
import { KnownModules } from '../../open/known-modules.ts';
import { openExistingReader, type RunStore } from '../../open/open-store.ts';
import { pidOfOwner } from '../../open/stored-runs.ts';
import { exitCodes, lineOf, oneLine } from '../../ui/failure.ts';
import { count } from '../../ui/format.ts';
import { PAWL } from '../../ui/shell-words.ts';
import { describeVerdict } from '../obstacle.ts';

/** Runs `pawl doctor`: reads every record, and says what the next recovery does with it. */
export const doctorCommand: Command = async (context) => {
  const modules = await Promise.all(context.args.words.map((file) => loadAgentModule(file)));
  const store = await openExistingReader(context.args.store, sharedCodec(modules));
  const counts = new Map<string, number>();
  let needing = 0;
  for await (const found of findings(modules, store)) {
    counts.set(found.verdict, (counts.get(found.verdict) ?? 0) + 1);
    if (found.needsPerson) needing += 1;
    if (context.args.json) context.output.printJson({ type: 'run', ...found });
    else context.output.print(lineFor(found));
  }
  summarise(context, { store, counts, needing });
  await store.close();
  return needing === 0 ? exitCodes.ok : exitCodes.failed;
};

async function* findings(modules: readonly AgentModule[], store: RunStore): AsyncGenerator<RunDiagnosis> {
  const known = new KnownModules();
  const options =
    modules.length === 0 ? {} : { agents: modules.map(({ agent }) => agent), migrate: migrateOf(modules) };
  for await (const found of diagnose(store, options)) {
    yield modules.length === 0
      ? withModule(found, () => known.find({ store: store.identity, runId: found.runId }))
      : found;
  }
}

/** Uses for each record the module of its agent. */
function migrateOf(modules: readonly AgentModule[]): Migrate {
  return (record) => {
    const module = modules.find(({ agent }) => agent.id === record.meta.agentId);
    return module?.options.migrate?.(record);
  };
}

/**
 * For a run that would be resumed: whether `pawl recover` knows its agent module, and whether the file still exists. If
 * another program started the run, only that program has the agent.
 */
function withModule(found: RunDiagnosis, pathOf: () => string | undefined): RunDiagnosis {
  if (found.verdict !== 'resumes') return found;
  const skipped = (reason: string): RunDiagnosis => ({
    ...found,
    verdict: 'skipped',
    code: 'AGENT_NOT_FOUND',
    reason,
    needsPerson: true,
  });
  const agent = oneLine(found.record?.agentId ?? '');
  try {
    const path = pathOf();
    if (path === undefined)
      return {
        ...found,
        reason: `${found.reason}; \`pawl recover\` needs its agent module as an argument, the one of agent ${agent}`,
      };
    if (statSync(path, { throwIfNoEntry: false })?.isFile()) return found;
    return skipped(
      `its agent ${agent} is missing: the module ${oneLine(path)} is gone; name its new path: ${PAWL} recover <agent module>`,
    );
  } catch (error) {
    return skipped(lineOf(error));
  }
}

function lineFor(found: RunDiagnosis): string {
  const { runId, verdict, code, needsPerson, record } = found;
  const pid = record?.owner === undefined ? undefined : pidOfOwner(record.owner);
  const facts = [
    describeVerdict(found, pid),
    ...(record?.isMigrated ? ['its next save writes it in the current format'] : []),
    ...(record && record.unknownCalls.length > 0 ? [unknown(record.unknownCalls)] : []),
  ];
  const end = needsPerson && code !== undefined ? ` (${oneLine(code)})` : '';
  return `${needsPerson ? '!' : ' '} ${verdict.padEnd(10)} ${oneLine(runId)}: ${facts.join('; ')}${end}`;
}

const unknown = (names: readonly string[]) =>
  `it is not known whether ${names.map(oneLine).join(', ')} took effect, so it is not repeated`;

interface Summary {
  readonly store: RunStore;
  readonly counts: ReadonlyMap<string, number>;
  readonly needing: number;
}

function summarise({ args, output }: CommandContext, { store, counts, needing }: Summary): void {
  const all = [...counts.values()].reduce((sum, each) => sum + each, 0);
  if (args.json) {
    const verdicts = Object.fromEntries(counts);
    output.printJson({ type: 'summary', store: store.path, records: all, verdicts, needingPerson: needing });
    return;
  }
  const verdicts = [...counts].map(([verdict, each]) => `${each} ${verdict}`).join(', ');
  const health = needing === 0 ? 'nothing needs a person' : `${count(needing, 'run needs', 'runs need')} a person`;
  output.say(`${count(all, 'record')} in ${store.path}${all === 0 ? '' : `: ${verdicts}`}; ${health}`);
}
