import type { AnswerState, Executor, ListedWait, Person } from '../../../index.ts';
import { nameOfWait, needsName, quorumOf } from '../../../run/waits/wait.ts';
import type { JsonValue } from '../../../values/json.ts';
import type { Arguments } from '../../arguments.ts';
import type { CliCommand } from '../../command.ts';
import { controlExecutor } from '../../open/control-executor.ts';
import type { RunStore } from '../../open/open-store.ts';
import { findWaiting, pidOf } from '../../open/stored-runs.ts';
import { whatContinues } from '../../open/way-to-resume.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../../ui/failure.ts';
import { PAWL, quoted } from '../../ui/shell-words.ts';
import { withoutRecord, withStore } from '../obstacle.ts';
import { allWaits } from './waiting-command.ts';

type Approval = Extract<ListedWait, { kind: 'approval' }>;
type Question = Extract<ListedWait, { kind: 'question' }>;
type Control = ReturnType<Executor['control']>;

/** Runs `pawl approve`: allows a call that waits for it. */
export const approveCommand: CliCommand = ({ args, output }) =>
  answer({ args, output }, 'approval', (control, wait) => {
    const { note, input } = args;
    // The call as it is shown: if it has changed since, nothing is approved.
    const digest = args.digest ?? (wait as Approval).digest;
    const edit = input === undefined ? {} : { input: jsonOf(input) };
    return control.approve(wait.id, { ...by(args), ...edit, ...(note === undefined ? {} : { note }), digest });
  });

/** Runs `pawl deny`: refuses a call that waits for an approval. */
export const denyCommand: CliCommand = ({ args, output }) =>
  answer({ args, output }, 'approval', (control, wait) => {
    const { reason } = args;
    return control.deny(wait.id, { ...by(args), ...(reason === undefined ? {} : { reason }) });
  });

/** Runs `pawl answer`: answers a question of a call. */
export const answerCommand: CliCommand = ({ args, output }) => {
  const [runId, ...rest] = args.words;
  const text = rest.pop();
  if (runId === undefined || text === undefined)
    throw new Failure(`\`pawl answer\` needs the id of a run, and the answer; \`${PAWL} waiting\` lists the questions`);
  return answer({ args: { ...args, words: [runId, ...rest] }, output }, 'question', (control, wait) =>
    control.answer(wait.id, answerValue(text, wait as Question), by(args)),
  );
};

const done = { approve: 'approved', deny: 'denied', answer: 'answered' };

async function answer(
  { args, output }: Parameters<CliCommand>[0],
  kind: 'approval' | 'question',
  give: (control: Control, wait: ListedWait) => Promise<AnswerState>,
): Promise<number> {
  const [runId, waitId] = args.words;
  if (runId === undefined)
    throw new Failure(`\`pawl ${args.command}\` needs the id of a run; \`${PAWL} waiting\` lists those that wait`);
  const readGiven = async (store: RunStore) => {
    const executor = controlExecutor(store);
    const wait = await findWait(executor, { store, runId, waitId, kind });
    if (needsName(wait) && !args.by)
      throw new Failure(`this decision needs a person: add --by <id>; the run records who decided`);
    const status = await give(executor.control(wait.runId), wait);
    if (args.json) output.printJson({ runId: wait.runId, waitId: wait.id, status });
    else output.say(await sentence({ args, store, wait, status }));
    return exitCodes.ok;
  };
  return withStore(args, readGiven, runId);
}

interface Sought {
  readonly store: RunStore;
  readonly runId: string;
  /** The beginning of its id; undefined if the run has one wait of this kind. */
  readonly waitId: string | undefined;
  readonly kind: ListedWait['kind'];
}

/** Finds the wait that a command names. A run that only its child waits in stands for that child. */
async function findWait(executor: Executor, { store, runId, waitId, kind }: Sought): Promise<ListedWait> {
  const waits: ListedWait[] = [];
  for await (const wait of allWaits(executor, runId)) {
    if (wait.kind === kind && wait.id.startsWith(waitId ?? '')) waits.push(wait);
  }
  const [only, other] = waits;
  const what = kind === 'approval' ? 'an approval' : 'an answer';
  if (only && !other) return only;
  if (only) {
    const ids = waits.map(({ id }) => id.slice(0, 12)).join(', ');
    throw new Failure(`run ${oneLine(runId)} waits for ${waits.length} of them; name one: ${ids}`);
  }
  if (!(await findWaiting(store, runId))) throw await withoutRecord(store, runId);
  const which = waitId === undefined ? '' : ` with an id that begins with ${quoted(waitId)}`;
  throw new Failure(
    `run ${oneLine(runId)} does not wait for ${what}${which}; \`${PAWL} waiting${store.option}\` lists the waits`,
  );
}

interface Given {
  readonly args: Arguments;
  readonly store: RunStore;
  readonly wait: ListedWait;
  readonly status: AnswerState;
}

/** Says what continues the run: this command runs none. */
async function sentence({ args, store, wait, status }: Given): Promise<string> {
  const { runId, rootRunId } = wait;
  const pid = pidOf(await findWaiting(store, runId));
  const said = `${done[args.command as keyof typeof done]} ${nameOfWait(wait)} of run ${oneLine(runId)}`.replace(
    'an approval of ',
    '',
  );
  // Whether the earlier one counts is known when the run has read it: it may be refused.
  const isSecond = (wait.answers?.length ?? 0) > 0 && !isVote(wait);
  const isOpen = status === 'pending' ? `${said}, unless the process that takes up the run refuses it` : said;
  const what = isSecond ? `${said}, if the answer before is refused` : isOpen;
  if (pid !== undefined) return `${what}; process ${pid} has the run, and reads this within a second`;
  return `${what}; ${whatContinues(store, rootRunId)}`;
}

/** Whether several persons answer. */
function isVote(wait: ListedWait): boolean {
  return quorumOf(wait) > 1;
}

function by({ by: id }: Arguments): { readonly by?: Person } {
  return id === undefined ? {} : { by: { id } };
}

function jsonOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new Failure(`--input is not JSON: ${lineOf(error)}`, { cause: error });
  }
}

/** Reads an answer as its question wants it: a text where texts are options or the schema says so, else JSON, else a text. */
export function answerValue(text: string, { options, schema }: Pick<Question, 'options' | 'schema'>): JsonValue {
  if (options?.includes(text) || schema?.type === 'string') return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
