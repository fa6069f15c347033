import { parse, parseAllDocuments } from 'yaml';
import { readCommandLine } from '../../src/cli/table/command-line.ts';
import { durationMs } from '../../src/values/clock.ts';

// Each check returns what is wrong with a file of docs/deploy; nothing = it is right.

/** What the last save and the exit need after the drain, s. */
const REST_S = 5;

/** The time of a text such as `15s` or `70`, in s. */
const secondsOf = (text: unknown): number => (durationMs(String(text)) ?? Number(text) * 1_000) / 1_000;

/** How long the supervisor must wait at least, by the words of a command. */
function drainOf(words: readonly string[]): number {
  const at = words.indexOf('--drain');
  return at < 0 ? Number.NaN : secondsOf(words[at + 1]);
}

/** The words of `pawl` in a command that begins with node; none = it does not. */
function wordsOf(command: readonly string[]): readonly string[] | undefined {
  const at = command.indexOf('node_modules/.bin/pawl');
  const isNode = command[0]?.split('/').at(-1) === 'node' && at > 0;
  return isNode && command.slice(1, at).every((word) => word.startsWith('--')) ? command.slice(at + 1) : undefined;
}

/** What is wrong with a command that runs for long, or that a probe starts. */
function checkCommand(command: readonly string[], where: string): string[] {
  const words = wordsOf(command);
  if (!words) return [`${where} does not begin with node and the command: ${command.join(' ')}`];
  try {
    readCommandLine(words);
    return [];
  } catch (error) {
    return [`${where}: ${(error as Error).message}`];
  }
}

/** What is wrong with the time that a supervisor waits. */
function checkTime(
  waits: unknown,
  needs: { readonly drain: number; readonly before?: number },
  where: string,
): string[] {
  const least = (needs.before ?? 0) + needs.drain + REST_S;
  return secondsOf(waits) >= least ? [] : [`${where} waits ${String(waits)}, and needs ${least} s`];
}

/** What is wrong with the memory of a process: the heap has a quarter less than the whole. */
function checkMemory(command: readonly string[], bytes: string, where: string): string[] {
  const heap = Number(command.find((word) => word.startsWith('--max-old-space-size='))?.split('=')[1]);
  const whole = Number(/^(\d+)(?:M|Mi|m)$/.exec(bytes)?.[1]);
  return heap <= whole * 0.75 ? [] : [`${where}: a heap of ${heap} MB in ${bytes}`];
}

const unitKeys = new Set([
  ...[
    'Description',
    'Wants',
    'After',
    'Type',
    'DynamicUser',
    'WorkingDirectory',
    'Environment',
    'EnvironmentFile',
    'ExecStart',
  ],
  ...['KillMode', 'TimeoutStopSec', 'Restart', 'RestartSec', 'RestartPreventExitStatus', 'StateDirectory', 'MemoryMax'],
  ...['NoNewPrivileges', 'ProtectSystem', 'ProtectHome', 'PrivateTmp', 'WantedBy'],
]);

export function checkUnit(text: string): string[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('['));
  const values = new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
  const command = (values.get('ExecStart') ?? '').split(' ');
  const wanted = {
    ...{
      Type: 'exec',
      KillMode: 'mixed',
      Restart: 'on-failure',
      RestartPreventExitStatus: '2',
      StateDirectory: 'pawl',
    },
    ...{ NoNewPrivileges: 'yes', ProtectSystem: 'strict', DynamicUser: 'yes' },
  };
  return [
    ...[...values.keys()].filter((key) => !unitKeys.has(key)).map((key) => `unknown key ${key}`),
    ...Object.entries(wanted).flatMap(([key, value]) => (values.get(key) === value ? [] : [`${key} is not ${value}`])),
    ...checkCommand(command, 'ExecStart'),
    ...checkTime(values.get('TimeoutStopSec'), { drain: drainOf(command) }, 'TimeoutStopSec'),
    ...checkMemory(command, values.get('MemoryMax') ?? '', 'MemoryMax'),
  ];
}

const instructions = new Set([
  'FROM',
  'WORKDIR',
  'COPY',
  'RUN',
  'ENV',
  'USER',
  'HEALTHCHECK',
  'CMD',
  'EXPOSE',
  'ARG',
  'LABEL',
]);

/** The instructions of a Dockerfile: name and rest, with continued lines joined. */
function instructionsIn(text: string): (readonly [string, string])[] {
  const joined = text.replaceAll(/\\\n\s*/g, '').split('\n');
  return joined
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => [line.split(' ')[0] ?? '', line.slice(line.indexOf(' ') + 1)] as const);
}

/** The words of an instruction in JSON form; none = it is a line for a shell. */
function jsonForm(rest: string): readonly string[] {
  const at = rest.indexOf('[');
  try {
    return at < 0 ? [] : (JSON.parse(rest.slice(at)) as string[]);
  } catch {
    return [];
  }
}

/** The command of an image. */
function commandIn(dockerfile: string): readonly string[] {
  return jsonForm(instructionsIn(dockerfile).find(([name]) => name === 'CMD')?.[1] ?? '');
}

export function checkDockerfile(text: string): string[] {
  const found = instructionsIn(text);
  const of = (name: string) => found.filter(([each]) => each === name).map(([, rest]) => rest);
  const last = found.map(([name]) => name).lastIndexOf('FROM');
  const user = found
    .slice(last)
    .filter(([name]) => name === 'USER')
    .at(-1)?.[1];
  return [
    ...found.filter(([name]) => !instructions.has(name)).map(([name]) => `unknown instruction ${name}`),
    ...(of('FROM').length >= 2 ? [] : ['one stage: the image has what builds it']),
    ...(user === undefined || user === 'root' || user === '0' ? ['it runs as root'] : []),
    ...(of('RUN').some((rest) => rest === 'npm ci --omit=dev --ignore-scripts') ? [] : ['npm ci lacks its options']),
    ...(of('COPY').some((rest) => rest.includes('--chown')) ? ['the files belong to the process'] : []),
    ...checkCommand(commandIn(text), 'CMD'),
    ...checkCommand(jsonForm(of('HEALTHCHECK')[0] ?? ''), 'HEALTHCHECK'),
  ];
}

export function checkCompose(text: string, dockerfile: string): string[] {
  const { services } = parse(text) as { services: Record<string, Record<string, unknown>> };
  const { worker = {}, postgres = {} } = services;
  const command = (worker.command as readonly string[] | undefined) ?? commandIn(dockerfile);
  const environments = [worker, postgres].map(({ environment }) => environment as Readonly<Record<string, string>>);
  const passwords = [environments[0]?.PGPASSWORD, environments[1]?.POSTGRES_PASSWORD];
  return [
    ...checkCommand(command, 'worker'),
    ...checkTime(worker.stop_grace_period, { drain: drainOf(command) }, 'stop_grace_period'),
    ...checkMemory(command, String(worker.mem_limit), 'mem_limit'),
    ...(worker.restart === 'on-failure' ? [] : ['a worker that ended in order is started again']),
    ...(Array.isArray(postgres.volumes) ? [] : ['the database has no volume']),
    ...(passwords.every((each) => each?.startsWith('$')) ? [] : ['a password is in the file']),
  ];
}

interface Container {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly livenessProbe?: { readonly httpGet?: { readonly path?: string } };
  readonly readinessProbe?: { readonly httpGet?: { readonly path?: string } };
  readonly resources?: { readonly requests?: object; readonly limits?: { readonly memory?: string } };
  readonly lifecycle?: { readonly preStop?: { readonly sleep?: { readonly seconds?: number } } };
}
interface PodSpec {
  readonly containers: readonly Container[];
  readonly restartPolicy?: string;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: { readonly runAsNonRoot?: boolean };
}
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector?: { readonly matchLabels: object };
    readonly template?: { readonly metadata: { readonly labels: object }; readonly spec: PodSpec };
    readonly jobTemplate?: {
      readonly spec: { readonly backoffLimit?: number; readonly template: { readonly spec: PodSpec } };
    };
  };
}

const versions: Readonly<Record<string, string>> = {
  ...{ Deployment: 'apps/v1', Service: 'v1', PodDisruptionBudget: 'policy/v1', CronJob: 'batch/v1' },
};

export function checkKubernetes(text: string): string[] {
  const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  const deployments = manifests.filter(({ kind }) => kind === 'Deployment');
  const selected = manifests.filter(({ kind }) => kind === 'PodDisruptionBudget').map(({ spec }) => spec.selector);
  return [
    ...manifests.flatMap(({ kind, apiVersion }) =>
      versions[kind] === apiVersion ? [] : [`${apiVersion} has no ${kind}`],
    ),
    ...(deployments.length === 1 ? [] : ['there is no Deployment']),
    ...deployments.flatMap(({ spec: { selector, template } }) => [
      ...(sameText(selector?.matchLabels, template?.metadata.labels) ? [] : ['the Deployment selects other pods']),
      ...(selected.some((each) => sameText(each, selector)) ? [] : ['the PodDisruptionBudget selects other pods']),
    ]),
    ...manifests.flatMap(checkManifest),
  ];
}

const sameText = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

function checkManifest({ kind, metadata: { name }, spec }: Manifest): string[] {
  const job = spec.jobTemplate?.spec;
  const pod = spec.template?.spec ?? job?.template.spec;
  if (!pod) return [];
  return [
    ...(pod.securityContext?.runAsNonRoot === true ? [] : [`${name} may run as root`]),
    ...(kind !== 'CronJob' || (pod.restartPolicy === 'OnFailure' && job?.backoffLimit !== undefined)
      ? []
      : [`${name} repeats without end`]),
    ...pod.containers.flatMap((container) => checkContainer(container, { name, pod, isWorker: kind === 'Deployment' })),
  ];
}

function checkContainer(
  { command = [], args = [], ...container }: Container,
  { name, pod, isWorker }: { readonly name: string; readonly pod: PodSpec; readonly isWorker: boolean },
): string[] {
  const words = [...command, ...args];
  const { requests, limits } = container.resources ?? {};
  const ofAll = [
    ...(requests && limits?.memory ? [] : [`${name} has no requests or no limit`]),
    ...(words.includes('node_modules/.bin/pawl') ? checkCommand(words, name) : []),
  ];
  if (!isWorker) return ofAll;
  const before = container.lifecycle?.preStop?.sleep?.seconds ?? 0;
  return [
    ...ofAll,
    ...checkCommand(words, name),
    ...checkTime(pod.terminationGracePeriodSeconds, { drain: drainOf(words), before }, 'terminationGracePeriodSeconds'),
    ...checkMemory(words, limits?.memory ?? '', name),
    ...(container.livenessProbe?.httpGet?.path === '/healthz' ? [] : ['the liveness probe asks something else']),
    ...(container.readinessProbe?.httpGet?.path === '/readyz' ? [] : ['the readiness probe asks something else']),
    ...(words.some((word) => word.startsWith('0.0.0.0:')) ? [] : ['no kubelet reaches the probes']),
  ];
}
