import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { type FanOutOptions, fanOut } from 'pawl/fan-out';
import {
  callTool,
  reply,
  type ScriptedEntry,
  type ScriptedModel,
  scriptedModel,
  type TestClock,
  testClock,
} from 'pawl/testing';
import { gate, toolOf, type Warning } from '../fixtures/host.ts';
import { freshFolder } from './fresh-folder.ts';

export const prompt = 'Which of the two?';

export interface Asked extends Omit<Partial<FanOutOptions>, 'models'> {
  /** By model: what it says, turn by turn. Or a model. */
  readonly models: { readonly [id: string]: readonly ScriptedEntry[] | ScriptedModel };
}

/** A call of `fanOut` on a clock that stands still, also while a disk is waited for, with all that it warned of. */
export function asked({ models: scripts, ...options }: Asked) {
  const models = Object.fromEntries(
    Object.entries(scripts).map(([id, script]) => [id, 'calls' in script ? script : scriptedModel(script)]),
  );
  const warned: Warning[] = [];
  const clock = clockBesideDisk();
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
/** The store of the records of a fan-out. */
export const recordsOf = (path: string) => join(`${path}.runs`, 'records.db');
/** What is in the folder of a checkpoint file. */
export const around = (path: string) => readdirSync(dirname(path)).sort();

/** Waits for what may take a disk some time. */
export async function until(holds: () => unknown, what = 'the condition'): Promise<void> {
  const latest = performance.now() + 30_000;
  while (!(await holds())) {
    if (performance.now() > latest) throw new Error(`${what} did not come to hold within 30 s`);
    await nextTurn();
  }
}

/** A call whose one model is within a tool, until the gate is opened: what happens meanwhile happens in the middle. */
export async function heldWithin(path: string) {
  const held = gate();
  const look = toolOf('look', 'read', () => held.pass());
  const call = asked({ models: { a: [callTool('look'), reply('of a')] }, path, tools: [look] });
  const running = call.start();
  await held.reached;
  return { call, running, open: held.open };
}

/** Lets the time of a call pass until it is over. */
export async function inItsTime<T>(
  { clock }: ReturnType<typeof asked>,
  running: Promise<T>,
  stepMs = 1_000,
): Promise<T> {
  let isOver = false;
  const result = running.finally(() => {
    isOver = true;
  });
  for (let steps = 0; !isOver && steps < 10_000; steps++) await clock.advance(stepMs);
  return result;
}

/** A clock on which no time passes while a real disk has something to do: however slow it is, it is never too late. */
function clockBesideDisk(): TestClock {
  const clock = testClock(1_795_302_000_000);
  const { advance } = clock;
  return Object.assign(clock, {
    // What a timer begins is over before a later one may give it up.
    advance: async (ms: number) => {
      for (let left = ms; left > 0; left -= 1_000) {
        await diskAtRest();
        await advance(Math.min(left, 1_000));
      }
    },
  });
}

/** Resolves when nothing that was asked of a disk is under way any more, nor what follows from it. */
async function diskAtRest(): Promise<void> {
  const isOfDisk = (name: string) => name.startsWith('FSReq') || name.startsWith('CloseReq');
  for (let quietTurns = 0; quietTurns < 10; quietTurns++) {
    const isAtWork = process.getActiveResourcesInfo().some(isOfDisk);
    if (isAtWork) quietTurns = 0;
    await (isAtWork ? sleep(1) : nextTurn());
  }
}
