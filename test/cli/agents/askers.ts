// Three models that work on a folder. HOLD names a file: turns from the second on are not taken before it exists, except by
// the model that EAGER names. FAIL names a model that is down; FAIL=editor@2 lets it take two turns before.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { callTool, reply, type ScriptedRequest, type ScriptedStep, scriptedModel } from 'pawl/testing';

const { HOLD, EAGER, JUDGE = '', FAIL = '' } = process.env;
const [failing, from = 0] = FAIL.split('@');

const plans: Readonly<Record<string, readonly ScriptedStep[]>> = {
  editor: [
    callTool('read_file', { path: 'greeting.txt' }, 'e1'),
    callTool('write_file', { path: 'greeting.txt', content: 'Hello, world!\n' }, 'e2'),
    reply('I greet the whole world now.'),
  ],
  reader: [callTool('list_files', {}, 'r1'), reply('There is one file, and it is fine.')],
  quick: [reply('No.')],
};

function planned(id: string) {
  const plan = plans[id] ?? [];
  const next = async ({ messages, signal }: ScriptedRequest): Promise<ScriptedStep> => {
    const turn = messages.filter(({ role }) => role === 'assistant').length;
    if (failing === id && turn >= Number(from)) throw Object.assign(new Error('it is down'), { isRetryable: false });
    while (turn > 0 && EAGER !== id && HOLD !== undefined && !existsSync(HOLD)) await sleep(10, undefined, { signal });
    return plan[turn] ?? reply('There is no such turn.');
  };
  return scriptedModel(Array.from({ length: 20 }, () => next));
}

export const models = { editor: planned('editor'), reader: planned('reader'), quick: planned('quick') };
export const prices = () => 0.002;
const judges: Readonly<Record<string, unknown>> = {
  function: () => ({ order: ['quick', 'editor'], reason: 'It is short.' }),
  model: scriptedModel([reply(JSON.stringify({ order: [3, 1, 2], reason: 'It is short.' }))]),
};
export const judge = judges[JUDGE];
