import {
  type Agent,
  createExecutor,
  defineAgent,
  type Executor,
  type JournalEvent,
  memoryStore,
  type Tool,
} from 'pawl';
import { type ScriptedEntry, scriptedModel, testClock } from 'pawl/testing';
import { wrapStore } from '../../../src/store/read-only.ts';
import { shownEvent } from '../../../src/studio/watch/shown-event.ts';

/** 12:00:00 of a day. */
const NOON = Date.UTC(2026, 10, 23, 12);

/** A process that can die: after `kill`, nothing of it reaches the store. */
export interface Process {
  readonly executor: Executor;
  readonly agent: Agent;
  kill(): void;
}

/** More options of the agent, and of its executor. */
interface Given {
  readonly executor?: object;
  readonly [option: string]: unknown;
}

/** A store with a journal, a clock that the test moves, and processes that come and go. */
export function world() {
  const clock = testClock(NOON);
  const store = memoryStore({ clock });
  const begin = (script: readonly ScriptedEntry[], tools: readonly Tool[] = [], given: Given = {}): Process => {
    const { executor: own, ...more } = given;
    let isDead = false;
    const checkpoints = wrapStore(
      store,
      (_, call) =>
        (...given) =>
          isDead ? new Promise(() => {}) : call(...given),
    );
    const agent = defineAgent({ id: 'desk', instructions: 'Work.', tools: [...tools], ...more });
    const executor = createExecutor({
      ...{ clock, logger: { warn: () => {} }, models: { fast: scriptedModel(script) }, agents: [agent] },
      ...{ store: checkpoints, journal: { flushMs: 1 } },
      ...own,
    });
    const kill = () => {
      isDead = true;
    };
    return { executor, agent, kill };
  };
  return { clock, store, begin, events: (runId: string) => eventsOf(begin([]).executor, runId) };
}

/** The events of a run that its journal has now, as the server sends them. */
async function eventsOf(executor: Executor, runId: string): Promise<readonly JournalEvent[]> {
  const read: JournalEvent[] = [];
  const events = executor.events(runId)[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([events.next(), settled()]);
    if (!next || next.done) return read;
    read.push(shownEvent(next.value).event);
  }
}

async function settled(): Promise<undefined> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  return undefined;
}
