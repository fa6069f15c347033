import { stateJson } from '../run/workflow/state.ts';
import { toErrorData } from '../values/error-data.ts';
import { EventInvalidError, WorkflowError, WorkflowLoopError, WorkflowStateError } from '../values/errors.ts';
import { bytesAbove, type JsonObject, type JsonValue } from '../values/json.ts';

/** Largest snapshot, in bytes of its JSON. */
const MAX_SNAPSHOT_BYTES = 2 ** 20;

/** Returns an event as a record holds it. @throws {WORKFLOW_STATE} */
export function eventOf({ event }: { readonly event: JsonValue }): JsonObject {
  return stateJson(event, 'event') as JsonObject;
}

/** Returns a snapshot as a record holds it: it is checked before. @throws {WORKFLOW_STATE} with the path of what no record can hold */
export function keptSnapshot(snapshot: JsonObject): JsonObject {
  const kept = jsonOf(snapshot);
  const bytes = bytesAbove(JSON.stringify(kept), MAX_SNAPSHOT_BYTES);
  if (bytes === undefined) return kept;
  throw new WorkflowStateError(`the snapshot has ${bytes} bytes of JSON, and a record takes ${MAX_SNAPSHOT_BYTES}`);
}

function jsonOf({ context, output, ...rest }: JsonObject): JsonObject {
  const json = stateJson(context ?? {}, 'context');
  refuseReferences(json, 'context');
  return { ...rest, context: json, ...(output === undefined ? {} : { output: stateJson(output, 'output') }) };
}

/** XState reads this key as a reference to an actor. */
const REFERENCE = 'xstate$$type';

function refuseReferences(value: JsonValue, path: string): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, each] of Object.entries(value)) {
    if (key === REFERENCE)
      throw new WorkflowStateError(
        `${path} holds an actor, or the key ${REFERENCE}: no record can hold it. Name the actor by its id, and begin it with spawnChild`,
      );
    refuseReferences(each as JsonValue, `${path}.${key}`);
  }
}

/** Errors that say themselves what is wrong with the machine. */
const ownErrors = [WorkflowError, WorkflowStateError, WorkflowLoopError, EventInvalidError];

/** Returns the error with which a workflow fails. @param what what the machine did */
export function asWorkflowError(thrown: unknown, what: string): Error {
  if (ownErrors.some((kind) => thrown instanceof kind)) return thrown as Error;
  const { message } = toErrorData(thrown);
  if (message.startsWith('Infinite loop detected'))
    return new WorkflowLoopError(`${what}: its eventless transitions never end`, { cause: thrown });
  return new WorkflowError(`${what}: ${message}`, { cause: thrown });
}
