import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Executor, ListedWait, RunEvent } from '../../../index.ts';
import { nameOfWait, quorumOf } from '../../../run/waits/wait.ts';
import type { JsonValue } from '../../../values/json.ts';
import { describeWait, isForPerson } from '../../ui/describe-wait.ts';
import { lineOf, oneLine } from '../../ui/failure.ts';
import type { Output } from '../../ui/output.ts';
import { PAWL } from '../../ui/shell-words.ts';
import { answerValue } from './answer-command.ts';
import { allWaits } from './waiting-command.ts';

/** What became of the questions of a run: one was answered, the person wants to answer later, or there is none. */
export type AskedPerson = 'answered' | 'later' | 'none';

/** After a question that ended by itself, so long nothing that is typed counts, ms: it was meant for that question. */
const DROP_TYPED_MS = 500;

/** A run whose waits a person is asked about. */
interface AskedRun {
  readonly executor: Executor;
  readonly runId: string;
  /** The store, as an option. */
  readonly option: string;
  readonly ends: WaitEnds;
}

/** Asks the person at the terminal for the first open approval or answer of a run and the runs below it. */
export async function askPerson(output: Output, { executor, runId, option, ends }: AskedRun): Promise<AskedPerson> {
  for await (const wait of allWaits(executor, runId)) {
    if (!isForPerson(wait)) continue;
    output.say(`run ${oneLine(wait.runId)} waits for ${oneLine(nameOfWait(wait))}:`);
    for (const line of describeWait(wait, Date.now())) output.say(`  ${line}`);
    const later = `(also in \`${PAWL} studio --write${option}\`)`;
    return askAndAnswer(output, { executor, wait, later, over: ends.of(wait) });
  }
  return 'none';
}

interface AskedWait {
  readonly executor: Executor;
  readonly wait: ListedWait;
  /** Where one can answer later. */
  readonly later: string;
  /** Aborted when the wait is over without an answer from here; its reason says how. */
  readonly over: AbortSignal;
}

/** Asks until an answer is taken, or the wait is over: an answer that does not fit is asked for again. */
async function askAndAnswer(output: Output, asked: AskedWait): Promise<AskedPerson> {
  const { wait, over } = asked;
  const isOver = async () => {
    output.say(oneLine(String(over.reason)));
    await dropTyped();
    return 'answered' as const;
  };
  for (;;) {
    const give = await (wait.kind === 'approval' ? askApproval({ ...asked, wait }) : askAnswer(asked));
    if (over.aborted) return isOver();
    if (give === undefined) return 'later';
    try {
      await give();
      return 'answered';
    } catch (error) {
      if (over.aborted) return isOver();
      output.say(`pawl: ${lineOf(error)}`);
      // Another person was faster, or its time is over: the list shows what is left.
      if (!/^ANSWER_REFUSED$|^ANSWER_REDACTED$/.test(String((error as { code?: unknown }).code))) return 'answered';
    }
  }
}

type Approval = Extract<ListedWait, { kind: 'approval' }>;
type Give = (() => Promise<unknown>) | undefined;

async function askApproval({ wait, executor, later, over }: AskedWait & { readonly wait: Approval }): Promise<Give> {
  const control = executor.control(wait.runId);
  const { digest, editable } = wait;
  for (;;) {
    const said = await ask(`approve? [y]es, [n]o, ${editable ? '[e]dit, ' : ''}[l]ater ${later}: `, over);
    if (said === undefined || /^l(ater)?$/i.test(said)) return undefined;
    if (/^y(es)?$/i.test(said)) return () => control.approve(wait.id, { digest });
    if (/^no?$/i.test(said)) {
      const reason = await ask('why not? (for the model; may be empty): ', over);
      return () => control.deny(wait.id, reason ? { reason } : {});
    }
    if (!editable || !/^e(dit)?$/i.test(said)) continue;
    const text = await ask('the input instead, as JSON: ', over);
    const input = text && parsed(text);
    if (input) return () => control.approve(wait.id, { digest, input: input.value });
  }
}

async function askAnswer({ wait, executor, later, over }: AskedWait): Promise<Give> {
  const text = await ask(`answer, or nothing for later ${later}: `, over);
  if (!text || wait.kind !== 'question') return undefined;
  return () => executor.control(wait.runId).answer(wait.id, answerValue(text, wait));
}

/** Finds out by their events when waits end that the terminal asks about. Made before the waits are listed, it misses none. */
export class WaitEnds {
  readonly #asked = new Map<string, { readonly wait: ListedWait; readonly over: AbortController }>();
  readonly #events: RunEvent[] = [];

  /** Returns a signal that is aborted when the wait is over, or has another vote; its reason is a text that says how. */
  of(wait: ListedWait): AbortSignal {
    const over = new AbortController();
    this.#asked.set(wait.id, { wait, over });
    for (const event of this.#events) this.#tell(event);
    return over.signal;
  }

  onEvent(event: RunEvent): void {
    if (!event.type.startsWith('wait.') && event.type !== 'run.parked' && event.type !== 'run.ended') return;
    this.#events.push(event);
    this.#tell(event);
  }

  #tell(event: RunEvent): void {
    for (const { wait, over } of this.#asked.values()) {
      const how = event.runId === wait.runId && !over.signal.aborted ? endOfWait(event, wait) : undefined;
      if (how !== undefined) over.abort(how);
    }
  }
}

const answers: { readonly [how: string]: string } = { approve: 'approved', deny: 'denied', answer: 'answered' };

/** What the person reads when no answer came in time. */
const late = { deny: 'the call is denied', fail: 'the run fails', park: 'the run is parked' };

/** Says how an event ends what the terminal asks about a wait; undefined if it does not. */
export function endOfWait(event: RunEvent, wait: ListedWait): string | undefined {
  if (event.type === 'run.parked') return 'the run is parked';
  if (event.type === 'run.ended')
    return event.status === 'interrupted' ? 'this process leaves the run' : 'the run has ended';
  if (!('waitId' in event) || event.waitId !== wait.id) return undefined;
  switch (event.type) {
    case 'wait.answered': {
      const { how, by, votes } = event;
      const said = `${answers[how] ?? 'answered'} ${by?.id ? `by ${by.name ?? by.id}` : 'elsewhere'}`;
      if (votes === undefined) return `${said}; continuing`;
      return `${said}, ${votes} of ${quorumOf(wait)}; it still needs an answer`;
    }
    case 'wait.expired':
      return `its time was over: ${wait.kind === 'approval' ? late[wait.onExpiry] : 'the call gets no answer'}`;
    case 'wait.withdrawn':
      return 'no answer is needed any more';
    default:
      return undefined;
  }
}

function parsed(text: string): { readonly value: JsonValue } | undefined {
  try {
    return { value: JSON.parse(text) as JsonValue };
  } catch {
    return undefined;
  }
}

/** Reads one line from the terminal; undefined at its end (Ctrl-D), or if it is over. Ctrl-C is a signal, as at any other time. */
async function ask(question: string, over: AbortSignal): Promise<string | undefined> {
  if (over.aborted) return undefined;
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  asking.on('close', () => closed.abort());
  asking.on('SIGINT', () => {
    closed.abort();
    // At once: a signal of the system would come after the question has ended.
    process.emit('SIGINT', 'SIGINT');
  });
  try {
    return (await asking.question(question, { signal: AbortSignal.any([closed.signal, over]) })).trim();
  } catch {
    process.stderr.write('\n');
    return undefined;
  } finally {
    asking.close();
  }
}

/** Drops what the person types for a question that has just ended by itself: it must not answer the next one. */
async function dropTyped(): Promise<void> {
  const reading = createInterface({ input: process.stdin, terminal: true });
  reading.on('SIGINT', () => process.emit('SIGINT', 'SIGINT'));
  await sleep(DROP_TYPED_MS);
  reading.close();
}

/** Whether a person can be asked: stdin and stderr are a terminal. */
export function hasPerson(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}
