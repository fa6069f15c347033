import { createExecutor, defineAgent, type ExecutorOptions, memoryStore, type Schedule } from 'pawl';
import { reply, scriptedModel, type TestClock, testClock } from 'pawl/testing';

/** When the clock of a test begins: half a minute before a full minute. */
export const START: number = Date.UTC(2026, 10, 28, 6, 58, 30);

export const agent = defineAgent({ id: 'digest', instructions: 'Sum up.' });
export const at = (text: string): number => Date.parse(text);
export const MINUTE_MS = 60_000;

/** An executor on a test clock, with what it said. Each schedule is `nightly` and begins a run of `digest`, unless it says otherwise. */
export function hostOf(schedules: readonly Partial<Schedule>[] | undefined, options: Partial<ExecutorOptions> = {}) {
  const clock = (options.clock as TestClock | undefined) ?? testClock(START);
  const store = (options.store ?? memoryStore({ clock })) as ReturnType<typeof memoryStore>;
  const warned: { readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[] = [];
  const ended: string[] = [];
  const start = (tick: Date) => ({ agent, invocation: { prompt: `Sum up ${tick.toISOString()}.` } });
  const executor = createExecutor({
    models: { fast: scriptedModel(Array.from({ length: 500 }, () => reply('done'))) },
    agents: [agent],
    ...(schedules ? { schedules: schedules.map((schedule) => ({ id: 'nightly', start, ...schedule })) } : {}),
    logger: { warn: (message, fields) => void warned.push({ message, fields }) },
    onOutcome: ({ runId }) => void ended.push(runId),
    ...options,
    clock,
    store,
  });
  return { clock, store, executor, warned, ended };
}
