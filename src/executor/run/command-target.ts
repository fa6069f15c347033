import { parseCommand } from '../../run/command.ts';
import type { Addressee } from '../services/command-inbox.ts';
import type { RunScope } from './active-run.ts';

/**
 * What a run does with the commands of other processes.
 * @param stored the commands that its record knows; its progress knows them only when `resolving` is over
 */
export function addresseeOf(scope: RunScope, stored: readonly string[]): Addressee {
  let known = stored;
  return {
    runId: scope.runId,
    get claim() {
      return scope.claim;
    },
    get commands() {
      const taken = scope.progress?.commands ?? [];
      return known.length > 0 ? [...new Set([...known, ...taken])] : taken;
    },
    async obey(given) {
      // From a host's store, or from a newer version: what is not known must not end a run.
      const command = parseCommand(given);
      if (command.kind === 'steer') {
        const { text, children = false, id } = command;
        return (await scope.steerAll(text, { children, command: id })) === 'durable';
      }
      const { reason } = command;
      scope.send({ type: 'run.cancel', ...(reason === undefined ? {} : { reason }) });
      // It stays in the inbox and goes with the record: a crash on the way to the end must not undo it.
      await scope.ended.promise;
      return false;
    },
    forget(ids) {
      known = known.filter((id) => !ids.includes(id));
      scope.send({ type: 'run.forget', commands: ids });
    },
    onEnd: (cleanup) => scope.onEnd(cleanup),
  };
}
