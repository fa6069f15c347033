import { toErrorData } from '../../values/error-data.ts';
import { EventInvalidError } from '../../values/errors.ts';
import { bytesAbove, frozenJson, isObject, type JsonObject } from '../../values/json.ts';

/** Largest machine event, in bytes of its JSON. */
const MAX_EVENT_BYTES = 65_536;

/** A machine event: a type, and any JSON. */
export type MachineEvent = JsonObject & { readonly type: string };

/**
 * Checks an event for the machine of a workflow. XState tells a machine the ends of its calls by events of its own: one of such a type would
 * forge a result.
 * @throws {EVENT_INVALID}
 */
export function checkMachineEvent(given: unknown): MachineEvent {
  if (!isObject(given) || typeof given.type !== 'string')
    throw new EventInvalidError('an event is { type: string, … }');
  const { type } = given;
  if (!isOwnType(type))
    throw new EventInvalidError(
      `an event of the type ${JSON.stringify(type.slice(0, 100))} is XState's own: no one may send it`,
    );
  const event = jsonOf(given);
  const bytes = bytesAbove(JSON.stringify(event), MAX_EVENT_BYTES);
  if (bytes === undefined) return event as MachineEvent;
  throw new EventInvalidError(`an event may have ${MAX_EVENT_BYTES} bytes of JSON, and this one has ${bytes}`);
}

/** Returns whether a type is one of the machine's own events. */
function isOwnType(type: string): boolean {
  return type !== '' && type !== '*' && !type.startsWith('xstate.') && type.isWellFormed();
}

function jsonOf(given: object): JsonObject {
  try {
    return frozenJson(given, 'event') as JsonObject;
  } catch (error) {
    throw new EventInvalidError(toErrorData(error).message, { cause: error });
  }
}

/** Returns whether a stored value is a machine event. */
export function isMachineEvent(value: unknown): boolean {
  return isObject(value) && typeof value.type === 'string' && isOwnType(value.type);
}

/** Returns whether a descriptor of XState names a type of events: the type itself, `*`, or the tokens before `.*`. */
export function isTypeOf(descriptor: string, type: string): boolean {
  if (descriptor === '*' || descriptor === type) return true;
  if (!descriptor.endsWith('.*')) return false;
  const before = descriptor.slice(0, -2);
  return type === before || type.startsWith(`${before}.`);
}
