import { parseCommand } from '../../run/command.ts';
import type { CommandTarget } from '../services/command-inbox.ts';
import type { ActiveRun } from './active-run.ts';

/**
 * Handles the commands of other processes for one run.
 * @param stored the commands that its record knows; its progress knows them only when `resolving` is over
 */
export function commandTargetOf(run: ActiveRun, stored: readonly string[]): CommandTarget {
  let known = stored;
  return {
    runId: run.runId,
    get claim() {
      return run.resources.claim;
    },
    get commands() {
      const taken = run.progress?.commands ?? [];
      return known.length > 0 ? [...new Set([...known, ...taken])] : taken;
    },
    async obey(given) {
      // From a host's store, or from a newer version: an unknown command must not end a run.
      const command = parseCommand(given);
      if (command.kind === 'steer') {
        const { text, children = false, id } = command;
        return (await run.steerAll(text, { children, command: id })) === 'durable';
      }
      const { reason } = command;
      run.send({ type: 'run.cancel', ...(reason === undefined ? {} : { reason }) });
      // It stays in the inbox and is deleted with the record: a crash on the way to the end must not undo it.
      await run.life.ended.promise;
      return false;
    },
    forget(ids) {
      known = known.filter((id) => !ids.includes(id));
      run.send({ type: 'run.forget', commands: ids });
    },
    onEnd: (cleanup) => run.onEnd(cleanup),
  };
}
