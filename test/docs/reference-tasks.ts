/** What a name of the package's main entry point is for: the first task whose names or folder fit. */
const tasks: readonly { readonly title: string; readonly names?: RegExp; readonly path?: RegExp }[] = [
  { title: 'Errors', names: /Error$|^(ErrorCode|KnownErrorCode|ErrorData|retryOf)$/ },
  { title: 'Events', names: /^RunEvent/, path: /\/run\/events/ },
  { title: 'Agents', path: /\/src\/agent\// },
  { title: 'Agents', names: /^(ModelSettings|Skill|Palette|createPalette|defineSkill)/ },
  { title: 'Tools', path: /\/src\/tool\//, names: /^(ToolEffect|ToolOutput)$/ },
  { title: 'Models', path: /\/src\/model\// },
  { title: 'Models', names: /^(Middleware|CallInfo|ModelCallInfo|ToolCallInfo)$/ },
  { title: 'Critic', path: /\/src\/critic\// },
  { title: 'Budget', path: /\/src\/budget\// },
  { title: 'Audit', path: /\/src\/audit\// },
  { title: 'Compaction', path: /\/src\/compaction\//, names: /^estimateTokens$/ },
  { title: 'Secrets', path: /\/src\/codec\//, names: /^Redaction/ },
  { title: 'Stores', path: /\/src\/store\// },
  { title: 'Stores', names: /^(Command|SentCommand|checkRunId|finalizeCheckpoint)$/ },
  { title: 'Records', path: /\/src\/record\// },
  {
    title: 'Records',
    names:
      /^(asSnapshot|PersistedRun|RunHead|RunDelta|Progress|ToolFacts|Open(Call|Step|Phase)|Phase(Facts|Start)|.*Fields|RunDefinition|ParkedReason|RunCheckpointMeta|Transcript|WholeValue|Writable|Hidden|GuardCounters|ResumeState)$/,
  },
  { title: 'Runs', path: /\/src\/(executor|run)\// },
  { title: 'Values', path: /\/src\/values\// },
];

/** In the order of the page: what is used most comes first. */
const order = ['Runs', 'Agents', 'Tools', 'Models', 'Events', 'Errors', 'Stores', 'Records'];

const otherTask = 'Others';

export function taskOf({ name, path }: { readonly name: string; readonly path: string }): string {
  const task = tasks.find((each) => each.names?.test(name) || each.path?.test(`/${path}`));
  return task?.title ?? otherTask;
}

/** The titles of all tasks, once each. */
export function taskTitles(): readonly string[] {
  const titles = new Set([...order, ...tasks.map(({ title }) => title), otherTask]);
  return [...titles];
}
