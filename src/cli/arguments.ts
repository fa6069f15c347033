import { parseArgs } from 'node:util';
import { Failure } from './ui/failure.ts';

const commandNames = [
  'run',
  'list',
  'show',
  'resume',
  'recover',
  'work',
  'cancel',
  'steer',
  'waiting',
  'approve',
  'deny',
  'answer',
  'signal',
  'park',
  'unpark',
  'doctor',
  'prune',
  'backup',
  'restore',
  'stats',
  'studio',
  'ask',
  'demo',
] as const;
export type CommandName = (typeof commandNames)[number];

/** What the user asked for. */
export interface Arguments {
  readonly command: CommandName | undefined;
  /** The words after the command. */
  readonly words: readonly string[];
  readonly store: string | undefined;
  readonly runId: string | undefined;
  readonly agent: string | undefined;
  readonly audit: string | undefined;
  readonly all: boolean;
  readonly by: string | undefined;
  readonly since: string | undefined;
  readonly limit: string | undefined;
  readonly olderThan: string | undefined;
  readonly quarantined: boolean;
  readonly parked: boolean;
  readonly waiting: boolean;
  readonly note: string | undefined;
  readonly input: string | undefined;
  readonly digest: string | undefined;
  readonly key: string | undefined;
  readonly id: string | undefined;
  readonly dryRun: boolean;
  readonly resumeReads: boolean;
  readonly acceptWithoutWal: string | undefined;
  readonly yes: boolean;
  readonly reason: string | undefined;
  readonly wait: string | undefined;
  readonly models: string | undefined;
  readonly module: string | undefined;
  readonly root: string | undefined;
  readonly noFiles: boolean;
  readonly judge: string | undefined;
  readonly deadline: string | undefined;
  readonly steps: string | undefined;
  readonly continue: boolean;
  readonly verbose: boolean;
  readonly codec: string | undefined;
  readonly port: string | undefined;
  readonly open: boolean;
  readonly write: boolean;
  readonly apply: string | undefined;
  readonly fanOuts: string | undefined;
  readonly newToken: boolean;
  readonly fairBy: string | undefined;
  readonly perKey: string | undefined;
  readonly concurrency: string | undefined;
  readonly deployment: string | undefined;
  readonly budget: string | undefined;
  readonly drain: string | undefined;
  readonly listen: boolean;
  readonly json: boolean;
  readonly help: boolean;
  readonly version: boolean;
}

const options = {
  store: { type: 'string' },
  'run-id': { type: 'string' },
  agent: { type: 'string' },
  audit: { type: 'string' },
  all: { type: 'boolean' },
  by: { type: 'string' },
  since: { type: 'string' },
  limit: { type: 'string' },
  'older-than': { type: 'string' },
  quarantined: { type: 'boolean' },
  parked: { type: 'boolean' },
  waiting: { type: 'boolean' },
  note: { type: 'string' },
  input: { type: 'string' },
  digest: { type: 'string' },
  key: { type: 'string' },
  id: { type: 'string' },
  'dry-run': { type: 'boolean' },
  'resume-reads': { type: 'boolean' },
  'accept-without-wal': { type: 'string' },
  yes: { type: 'boolean', short: 'y' },
  reason: { type: 'string' },
  wait: { type: 'string' },
  models: { type: 'string', short: 'm' },
  module: { type: 'string' },
  root: { type: 'string' },
  'no-files': { type: 'boolean' },
  judge: { type: 'string' },
  deadline: { type: 'string' },
  steps: { type: 'string' },
  continue: { type: 'boolean', short: 'c' },
  verbose: { type: 'boolean' },
  codec: { type: 'string' },
  port: { type: 'string' },
  open: { type: 'boolean' },
  write: { type: 'boolean' },
  apply: { type: 'string' },
  'fan-outs': { type: 'string' },
  'new-token': { type: 'boolean' },
  'fair-by': { type: 'string' },
  'per-key': { type: 'string' },
  concurrency: { type: 'string' },
  deployment: { type: 'string' },
  budget: { type: 'string' },
  drain: { type: 'string' },
  listen: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

const always = ['help', 'version', 'json'];
const accepted: Readonly<Record<CommandName, { readonly options: readonly string[]; readonly words: number }>> = {
  run: { options: ['store', 'audit', 'run-id'], words: 2 },
  list: { options: ['store', 'audit', 'all', 'since', 'limit'], words: 0 },
  show: { options: ['store', 'audit'], words: 1 },
  resume: { options: ['store', 'audit', 'agent'], words: 1 },
  recover: { options: ['store', 'audit'], words: Number.POSITIVE_INFINITY },
  work: {
    options: ['store', 'audit', 'fair-by', 'per-key', 'concurrency', 'deployment', 'budget', 'drain', 'listen'],
    words: 1,
  },
  cancel: { options: ['store', 'audit', 'reason', 'wait'], words: 1 },
  steer: { options: ['store', 'wait'], words: 2 },
  waiting: { options: ['store'], words: 1 },
  approve: { options: ['store', 'by', 'note', 'input', 'digest'], words: 2 },
  deny: { options: ['store', 'by', 'reason'], words: 2 },
  answer: { options: ['store', 'by'], words: 3 },
  signal: { options: ['store', 'key', 'id'], words: 2 },
  park: { options: ['store'], words: 2 },
  unpark: { options: ['store'], words: 1 },
  doctor: { options: ['store'], words: Number.POSITIVE_INFINITY },
  prune: { options: ['store', 'older-than', 'quarantined', 'parked', 'waiting', 'dry-run', 'yes'], words: 0 },
  backup: { options: ['store'], words: 1 },
  restore: { options: ['store', 'codec', 'resume-reads', 'accept-without-wal'], words: 1 },
  stats: { options: ['store', 'audit', 'by', 'since'], words: 0 },
  studio: {
    options: ['store', 'codec', 'agent', 'port', 'open', 'write', 'apply', 'fan-outs', 'new-token'],
    words: 0,
  },
  ask: { options: ['models', 'module', 'root', 'no-files', 'judge', 'deadline', 'steps', 'continue'], words: 2 },
  demo: { options: ['verbose'], words: 0 },
};

/** Parses the words and options of a command line. @throws {Failure} for unknown options and commands */
export function readArguments(argv: readonly string[]): Arguments {
  const { values, positionals } = parse(argv);
  const isHelp = positionals[0] === 'help';
  const [word, ...words] = isHelp ? positionals.slice(1) : positionals;
  const command = commandOf(word);
  if (command) checkOptions(command, Object.keys(values));
  if (command && !isHelp && words.length > accepted[command].words) throw tooMany(command, words);
  return {
    command,
    words,
    store: values.store,
    runId: values['run-id'],
    agent: values.agent,
    audit: values.audit,
    all: values.all ?? false,
    by: values.by,
    since: values.since,
    limit: values.limit,
    olderThan: values['older-than'],
    quarantined: values.quarantined ?? false,
    parked: values.parked ?? false,
    waiting: values.waiting ?? false,
    note: values.note,
    input: values.input,
    digest: values.digest,
    key: values.key,
    id: values.id,
    dryRun: values['dry-run'] ?? false,
    resumeReads: values['resume-reads'] ?? false,
    acceptWithoutWal: values['accept-without-wal'],
    yes: values.yes ?? false,
    reason: values.reason,
    wait: values.wait,
    models: values.models,
    module: values.module,
    root: values.root,
    noFiles: values['no-files'] ?? false,
    judge: values.judge,
    deadline: values.deadline,
    steps: values.steps,
    continue: values.continue ?? false,
    verbose: values.verbose ?? false,
    codec: values.codec,
    port: values.port,
    open: values.open ?? false,
    write: values.write ?? false,
    apply: values.apply,
    fanOuts: values['fan-outs'],
    newToken: values['new-token'] ?? false,
    fairBy: values['fair-by'],
    perKey: values['per-key'],
    concurrency: values.concurrency,
    deployment: values.deployment,
    budget: values.budget,
    drain: values.drain,
    listen: values.listen ?? false,
    json: values.json ?? false,
    help: isHelp || (values.help ?? false),
    version: values.version ?? false,
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split(/(?<=['"])\. |\n/);
    const plain = sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '');
    const dash = argv[0] === 'run' || argv[0] === 'ask' ? ' (a prompt that begins with a dash goes after --)' : '';
    throw new Failure(`${plain}; \`pawl --help\` lists the options${dash}`, { cause: error });
  }
}

function commandOf(word: string | undefined): CommandName | undefined {
  if (word === undefined) return undefined;
  const found = commandNames.find((name) => name === word);
  if (found) return found;
  throw new Failure(`unknown command ${JSON.stringify(word)}; the commands are ${commandNames.join(', ')}`);
}

function checkOptions(command: CommandName, given: readonly string[]): void {
  const strange = given.find((name) => ![...always, ...accepted[command].options].includes(name));
  if (strange !== undefined) {
    throw new Failure(`\`pawl ${command}\` has no option --${strange}; \`pawl ${command} --help\` lists its options`);
  }
}

function tooMany(command: CommandName, words: readonly string[]): Failure {
  const extra = words.slice(accepted[command].words).join(' ');
  const hint =
    command === 'run' || command === 'ask'
      ? 'put the prompt in quotes'
      : `\`pawl ${command} --help\` says what it takes`;
  return new Failure(`\`pawl ${command}\` does not take ${JSON.stringify(extra)}; ${hint}`);
}
