import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, defineAgent, defineTool, type Model, type Tool, type ToolEffect } from 'pawl';
import { callTools, reply, type ScriptedRequest, scriptedModel } from 'pawl/testing';
import { type Failpoints, failingCall } from './failpoints.ts';
import { note } from './ledger.ts';
import { numberOf } from './random.ts';

/** Twelve tools, four of each effect. */
const effects: readonly ToolEffect[] = ['read', 'idempotent', 'once'];
export const toolNames = effects.flatMap((effect) => [1, 2, 3, 4].map((n) => `${effect}_${n}`));

/** What the model asks for, step by step: single calls of each effect, and three at a time in every mixture. */
const plan: readonly (readonly string[])[] = [
  ['read_1'],
  ['idempotent_1'],
  ['once_1'],
  ['read_2', 'idempotent_2', 'once_2'],
  ['once_3', 'once_4', 'once_1'],
  ['read_3', 'read_4', 'read_1'],
  ['idempotent_3', 'idempotent_4', 'read_2'],
  ['once_2'],
  ['idempotent_1', 'once_3', 'idempotent_2'],
  ['read_3'],
];

/** The names that each step calls; a model and its tools that behave alike in every process. */
export const planned: readonly (readonly string[])[] = plan;

export interface TwelveTools {
  readonly agent: Agent;
  readonly model: Model;
}

export function twelveTools(folder: string, points: Failpoints): TwelveTools {
  const agent = defineAgent({
    id: 'twelve-tools',
    instructions: 'Follow the plan.',
    tools: toolNames.map((name) => tool(name, { folder, points })),
    maxSteps: plan.length + 1,
  });
  // One model serves all runs of a process, and each of its calls takes one entry.
  return { agent, model: scriptedModel(Array.from({ length: 5_000 }, () => answer)) };
}

/** A function of the transcript and nothing else, like a model at temperature 0. */
async function answer({ messages }: ScriptedRequest) {
  const step = messages.filter((message) => message.role === 'assistant').length;
  await sleep(2 * numberOf(`model ${step}`));
  const names = plan[step];
  if (names === undefined) return reply(`Done after ${step} steps.`);
  return callTools(names.map((name, i) => ({ name, input: { step, position: i }, callId: `step${step}-${i}` })));
}

export function tool(name: string, { folder, points }: { folder: string; points: Failpoints }): Tool {
  const effect = name.split('_')[0] as ToolEffect;
  return defineTool({
    name,
    description: `Does what has the effect ${effect}, and says so.`,
    input: {
      type: 'object',
      properties: { step: { type: 'integer' }, position: { type: 'integer' } },
      required: ['step', 'position'],
    },
    effect,
    execute: (input, context) => {
      const { runId, callId, attempt, idempotencyKey: key } = context;
      const line = { pid: process.pid, runId, tool: name, effect, callId, key, attempt };
      return failingCall(
        { effect, context, points },
        {
          begin: () => note(folder, { phase: 'begin', ...line }),
          work: async () => {
            await sleep(1 + 6 * numberOf(callId));
            return { tool: name, said: `${name} at ${JSON.stringify(input)}`, filler: callId.repeat(40) };
          },
          end: () => note(folder, { phase: 'end', ...line }),
        },
      );
    },
  });
}
