import { createInterface } from 'node:readline/promises';
import type { Executor, ListedWait } from '../../index.ts';
import { nameOfWait } from '../../run/waits/wait.ts';
import type { JsonValue } from '../../values/json.ts';
import { describeWait, isForPerson } from '../ui/describe-wait.ts';
import { lineOf, oneLine } from '../ui/failure.ts';
import type { Output } from '../ui/output.ts';
import { answerValue } from './answer-command.ts';
import { allWaits } from './waiting-command.ts';

/** What became of the questions of a run: one was answered, the person wants to answer later, or there is none. */
export type Asked = 'answered' | 'later' | 'none';

/** Asks the person at the terminal for the first open approval or answer of a run and the runs below it. */
export async function askPerson(output: Output, executor: Executor, rootRunId: string): Promise<Asked> {
  for await (const wait of allWaits(executor, rootRunId)) {
    if (!isForPerson(wait)) continue;
    output.say(`run ${oneLine(wait.runId)} waits for ${oneLine(nameOfWait(wait))}:`);
    for (const line of describeWait(wait, Date.now())) output.say(`  ${line}`);
    return answered(output, executor, wait);
  }
  return 'none';
}

/** Asks until an answer is taken: one that does not fit is asked for again. */
async function answered(output: Output, executor: Executor, wait: ListedWait): Promise<Asked> {
  for (;;) {
    const give = wait.kind === 'approval' ? await askApproval(wait, executor) : await askAnswer(wait, executor);
    if (give === undefined) return 'later';
    try {
      await give();
      return 'answered';
    } catch (error) {
      output.say(`pawl: ${lineOf(error)}`);
      // Another person was faster, or its time is over: the list shows what is left.
      if (!/^ANSWER_REFUSED$|^ANSWER_REDACTED$/.test(String((error as { code?: unknown }).code))) return 'answered';
    }
  }
}

type Give = (() => Promise<unknown>) | undefined;

async function askApproval(wait: Extract<ListedWait, { kind: 'approval' }>, executor: Executor): Promise<Give> {
  const control = executor.control(wait.runId);
  const { digest, editable } = wait;
  for (;;) {
    const said = await ask(`approve? [y]es, [n]o, ${editable ? '[e]dit, ' : ''}[l]ater: `);
    if (said === undefined || /^l(ater)?$/i.test(said)) return undefined;
    if (/^y(es)?$/i.test(said)) return () => control.approve(wait.id, { digest });
    if (/^no?$/i.test(said)) {
      const reason = await ask('why not? (for the model; may be empty): ');
      return () => control.deny(wait.id, reason ? { reason } : {});
    }
    if (!editable || !/^e(dit)?$/i.test(said)) continue;
    const text = await ask('the input instead, as JSON: ');
    const input = text && parsed(text);
    if (input) return () => control.approve(wait.id, { digest, input: input.value });
  }
}

async function askAnswer(wait: ListedWait, executor: Executor): Promise<Give> {
  const text = await ask('answer (empty: later): ');
  if (!text || wait.kind !== 'question') return undefined;
  return () => executor.control(wait.runId).answer(wait.id, answerValue(text, wait));
}

function parsed(text: string): { readonly value: JsonValue } | undefined {
  try {
    return { value: JSON.parse(text) as JsonValue };
  } catch {
    return undefined;
  }
}

/** Reads one line from the terminal; undefined at its end (Ctrl-D). Ctrl-C is a signal, as at any other time. */
async function ask(question: string): Promise<string | undefined> {
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  asking.on('close', () => closed.abort());
  asking.on('SIGINT', () => {
    closed.abort();
    // At once: a signal of the system would come after the question has ended.
    process.emit('SIGINT', 'SIGINT');
  });
  try {
    return (await asking.question(question, { signal: closed.signal })).trim();
  } catch {
    process.stderr.write('\n');
    return undefined;
  } finally {
    asking.close();
  }
}

/** Whether a person can be asked: stdin and stderr are a terminal. */
export function hasPerson(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}
