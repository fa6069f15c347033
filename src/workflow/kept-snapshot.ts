import { toErrorData } from '../values/error-data.ts';
import { EventInvalidError, WorkflowError, WorkflowLoopError, WorkflowStateError } from '../values/errors.ts';
import { frozenJson, type JsonObject, type JsonValue } from '../values/json.ts';

/** Longest snapshot, in characters of its JSON. */
const MAX_SNAPSHOT_CHARS = 2 ** 20;

/** Returns an event as a record holds it. @throws {NOT_JSON} */
export function eventOf({ event }: { readonly event: JsonValue }): JsonObject {
  return frozenJson(event, 'event') as JsonObject;
}

/** Returns a snapshot as a record holds it: it is checked before. @throws {WORKFLOW_STATE} with the path of what no record can hold */
export function keptSnapshot(snapshot: JsonObject): JsonObject {
  const kept = jsonOf(snapshot);
  const { length } = JSON.stringify(kept);
  if (length <= MAX_SNAPSHOT_CHARS) return kept;
  throw new WorkflowStateError(
    `the snapshot has ${length} characters of JSON, and a record takes ${MAX_SNAPSHOT_CHARS}`,
  );
}

function jsonOf({ context, output, ...rest }: JsonObject): JsonObject {
  try {
    const json = frozenJson(context ?? {}, 'context');
    refuseReferences(json, 'context');
    return { ...rest, context: json, ...(output === undefined ? {} : { output: frozenJson(output, 'output') }) };
  } catch (error) {
    if (error instanceof WorkflowStateError) throw error;
    throw new WorkflowStateError(toErrorData(error).message, { cause: error });
  }
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
