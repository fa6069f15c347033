/** An option, as parseArgs of Node takes it. */
export interface Option {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** What help calls its value. */
  readonly value?: string;
}

/** Every option of the command. */
export const options = {
  store: { type: 'string', value: 'store' },
  'run-id': { type: 'string', value: 'id' },
  at: { type: 'string', value: 'n' },
  effects: { type: 'string', value: 'word' },
  agent: { type: 'string', value: 'file' },
  audit: { type: 'boolean' },
  all: { type: 'boolean' },
  'needs-person': { type: 'boolean' },
  rows: { type: 'boolean' },
  by: { type: 'string', value: 'id' },
  now: { type: 'string', value: 'of' },
  since: { type: 'string', value: 'time' },
  limit: { type: 'string', value: 'n' },
  'older-than': { type: 'string', value: 'time' },
  code: { type: 'string', value: 'code' },
  'agent-id': { type: 'string', value: 'id' },
  quarantined: { type: 'boolean' },
  parked: { type: 'boolean' },
  waiting: { type: 'boolean' },
  note: { type: 'string', value: 'text' },
  input: { type: 'string', value: 'json' },
  digest: { type: 'string', value: 'hash' },
  data: { type: 'string', value: 'json' },
  key: { type: 'string', value: 'key' },
  id: { type: 'string', value: 'id' },
  'dry-run': { type: 'boolean' },
  'resume-reads': { type: 'boolean' },
  'accept-without-wal': { type: 'string', value: 'file' },
  yes: { type: 'boolean', short: 'y' },
  reason: { type: 'string', value: 'text' },
  wait: { type: 'string', value: 'time' },
  models: { type: 'string', value: 'list', short: 'm' },
  module: { type: 'string', value: 'file' },
  root: { type: 'string', value: 'dir' },
  'no-files': { type: 'boolean' },
  judge: { type: 'string', value: 'model' },
  deadline: { type: 'string', value: 'time' },
  steps: { type: 'string', value: 'n' },
  continue: { type: 'boolean', short: 'c' },
  verbose: { type: 'boolean' },
  codec: { type: 'string', value: 'file' },
  port: { type: 'string', value: 'n' },
  open: { type: 'boolean' },
  write: { type: 'boolean' },
  apply: { type: 'string', value: 'folder' },
  'fan-outs': { type: 'string', value: 'folder' },
  'new-token': { type: 'boolean' },
  'fair-by': { type: 'string', value: 'label' },
  'per-key': { type: 'string', value: 'n' },
  concurrency: { type: 'string', value: 'n' },
  deployment: { type: 'string', value: 'n' },
  budget: { type: 'string', value: 'time' },
  drain: { type: 'string', value: 'time' },
  listen: { type: 'boolean' },
  health: { type: 'string', value: 'address' },
  'wait-for-store': { type: 'string', value: 'time' },
  url: { type: 'string', value: 'url' },
  out: { type: 'string', value: 'file' },
  decrypt: { type: 'boolean' },
  'live-model': { type: 'boolean' },
  tools: { type: 'string', value: 'how' },
  'on-miss': { type: 'string', value: 'how' },
  status: { type: 'string', value: 'status' },
  label: { type: 'string', value: 'name=text' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const satisfies Readonly<Record<string, Option>>;
export type OptionName = keyof typeof options;

type CamelCase<Name extends string> = Name extends `${infer Word}-${infer Rest}`
  ? `${Word}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** The value of each option, by its name in camel case. */
export type OptionValues = {
  readonly [Name in OptionName as CamelCase<Name>]: (typeof options)[Name]['type'] extends 'boolean'
    ? boolean
    : string | undefined;
};

/** What the user asked for. */
export interface Arguments extends OptionValues {
  readonly command: string | undefined;
  /** The words after the command. */
  readonly words: readonly string[];
}
