import type { DemoFacts } from './narrator.ts';

/** What `pawl demo --json` prints. */
export function documentOf({ stage, pids, kills, histories, repeated, once, status, answer }: DemoFacts) {
  const calls = (pid: number) =>
    histories.flatMap(({ tool, file, callId, processes }) => {
      const finished = processes.get(pid);
      return finished === undefined ? [] : [{ tool, file, callId, finished }];
    });
  return {
    folder: stage.folder,
    store: stage.store,
    report: stage.report,
    runId: kills[0]?.record.meta.runId,
    status,
    answer,
    kills: kills.map(({ pid, cutOff, record }) => ({
      pid,
      signal: 'SIGKILL',
      steps: record.iteration,
      underWay: cutOff.map(({ tool, file, callId }) => ({ tool, file, callId })),
    })),
    processes: pids.map((pid) => ({ pid, calls: calls(pid) })),
    recorded: histories.filter(({ recordedAt }) => recordedAt !== undefined).length,
    once: [...once],
    repeated: repeated.length,
  };
}
