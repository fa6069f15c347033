import { diagnose, type Migrate, type RunDiagnosis } from '../../../index.ts';
import type { CliCommand, CommandContext } from '../../command.ts';
import { type AgentModule, loadAgentModule } from '../../open/agent-module.ts';
import { sharedCodec } from '../../open/codec-export.ts';
import { KnownModules } from '../../open/known-modules.ts';
import { openExistingReader, type RunStore } from '../../open/open-store.ts';
import { pidOfOwner } from '../../open/stored-runs.ts';
import { exitCodes, oneLine } from '../../ui/failure.ts';
import { count } from '../../ui/format.ts';
import { describeVerdict, withModule } from '../obstacle.ts';

/** Runs `pawl doctor`: reads every record, and says what the next recovery does with it. */
export const doctorCommand: CliCommand = async (context) => {
  const { words, agent, store: place } = context.args;
  const files = agent === undefined ? words : [...words, agent];
  const modules = await Promise.all(files.map((file) => loadAgentModule(file)));
  const store = await openExistingReader(place, sharedCodec(modules));
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
      ? withModule(found, {
          agentId: found.record?.agentId,
          pathOf: () => known.find({ store: store.identity, runId: found.runId }),
        })
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
