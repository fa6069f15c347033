import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Agent, createPalette, defineAgent, defineTool, type Model, type Palette, type ToolEffect } from 'pawl';
import { callTools, reply, type ScriptedRequest, type ScriptedToolCall } from 'pawl/testing';
import { answeringModel, promptOf, turnsOf } from '../fixtures/answering-model.ts';
import { type Failpoints, failingCall } from './failpoints.ts';
import { appendJsonLine } from './json-lines.ts';
import { note } from './ledger.ts';
import { numberOf } from './random.ts';

/** What a run of the tree was asked; written down before each of its calls. */
export interface AskedRun {
  readonly prompt: string;
  readonly runId: string;
}

const effects: readonly ToolEffect[] = ['read', 'idempotent', 'once'];
const ask = (name: 'lead' | 'writer', prompt: string): ScriptedToolCall => ({
  name: `agent__${name}`,
  input: { prompt },
  callId: prompt,
});

/** What each asks for, turn by turn; its answer says only that it is done. */
const plans: Readonly<Record<string, (prompt: string) => readonly (readonly ScriptedToolCall[])[]>> = {
  root: () => [[ask('lead', 'first'), ask('writer', 'second')], [ask('writer', 'third')]],
  lead: (prompt) => [[ask('writer', 'deep')], [call(prompt, 'once', 1)]],
  writer: (prompt) => [
    effects.map((effect) => call(prompt, effect, 0)),
    [call(prompt, 'idempotent', 1)],
    [call(prompt, 'once', 2)],
  ],
};

const call = (prompt: string, effect: ToolEffect, turn: number): ScriptedToolCall => ({
  name: effect,
  input: { prompt, turn },
  callId: `${effect}-${turn}`,
});

export interface Tree {
  readonly agent: Agent;
  readonly palette: Palette;
  readonly model: Model;
}

/** A run that puts others to work, two side by side, one of which puts a third to work. */
export function treeOf(folder: string, points: Failpoints): Tree {
  const tools = effects.map((effect) => tool(effect, { folder, points }));
  const answer = async (request: ScriptedRequest) => {
    const [prompt, turn] = [promptOf(request), turnsOf(request)];
    appendJsonLine(join(folder, 'turns.jsonl'), { pid: process.pid, prompt, turn });
    await sleep(3 * numberOf(`${prompt} ${turn}`));
    const calls = plans[request.system]?.(prompt)[turn];
    return calls ? callTools(calls) : reply(`${prompt} done`);
  };
  return {
    agent: defineAgent({ id: 'root', instructions: 'root', subAgents: ['lead', 'writer'] }),
    palette: createPalette({
      agents: [
        defineAgent({ id: 'lead', instructions: 'lead', subAgents: ['writer'], tools }),
        defineAgent({ id: 'writer', instructions: 'writer', tools }),
      ],
    }),
    model: answeringModel(answer),
  };
}

function tool(effect: ToolEffect, { folder, points }: { folder: string; points: Failpoints }) {
  return defineTool({
    name: effect,
    description: `Does what has the effect ${effect}.`,
    input: { type: 'object' },
    effect,
    execute: (input, context) => {
      const { prompt } = input as { prompt: string };
      const { runId, callId, attempt, idempotencyKey: key } = context;
      const line = { pid: process.pid, runId, tool: effect, effect, callId, key, attempt };
      return failingCall(
        { effect, context, points },
        {
          begin: () => {
            appendJsonLine(join(folder, 'runs.jsonl'), { prompt, runId } satisfies AskedRun);
            note(folder, { phase: 'begin', ...line });
          },
          work: async () => {
            await sleep(1 + 5 * numberOf(key));
            return `${key} is done`;
          },
          end: () => note(folder, { phase: 'end', ...line }),
        },
      );
    },
  });
}
