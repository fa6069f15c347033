import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FanOutOptions, fanOut } from 'pawl/fan-out';
import { callTool, reply, type ScriptedEntry, type ScriptedModel, scriptedModel, testClock } from 'pawl/testing';
import { gate, toolOf, until as untilWithin, type Warning } from '../fixtures/host.ts';
import { freshFolder } from './fresh-folder.ts';

export const prompt = 'Which of the two?';

export interface Asked extends Omit<Partial<FanOutOptions>, 'models'> {
  /** By model: what it says, turn by turn. Or a model. */
  readonly models: { readonly [id: string]: readonly ScriptedEntry[] | ScriptedModel };
}

/** A call of `fanOut` on a clock that stands still, with all that it warned of. */
export function asked({ models: scripts, ...options }: Asked) {
  const models = Object.fromEntries(
    Object.entries(scripts).map(([id, script]) => [id, 'calls' in script ? script : scriptedModel(script)]),
  );
  const warned: Warning[] = [];
  const clock = testClock(1_795_302_000_000);
  const caller = new AbortController();
  return {
    models,
    warned,
    clock,
    caller,
    /** How often each model was asked, in their order. */
    calls: () => Object.values(models).map(({ calls }) => calls.length),
    start: (more: Partial<FanOutOptions> = {}) =>
      fanOut({
        prompt,
        models,
        clock,
        signal: caller.signal,
        logger: { warn: (message, fields = {}) => warned.push({ message, fields }) },
        ...options,
        ...more,
      } as FanOutOptions),
  };
}

export const freshPath = () => join(freshFolder(), 'ask.json');
/** What is in the folder of a checkpoint file. */
export const around = (path: string) => readdirSync(dirname(path)).sort();

/** Waits for what may take a disk some time. */
export const until = (holds: () => unknown, what = 'the condition') => untilWithin(holds, what, 1_000_000);

/** A call whose one model is within a tool, until the gate is opened: what happens meanwhile happens in the middle. */
export async function heldWithin(path: string) {
  const held = gate();
  const look = toolOf('look', 'read', () => held.pass());
  const call = asked({ models: { a: [callTool('look'), reply('of a')] }, path, tools: [look] });
  const running = call.start();
  await held.reached;
  return { call, running, open: held.open };
}

/** Lets the time of a call pass until it is over: slowly enough that a real disk can do what has to be done within that time. */
export async function inItsTime<T>(
  { clock }: ReturnType<typeof asked>,
  running: Promise<T>,
  stepMs = 1_000,
): Promise<T> {
  let isOver = false;
  const result = running.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await clock.advance(stepMs);
    await sleep(2);
  }
  return result;
}
