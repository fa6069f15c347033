import type { Message } from '../index.ts';
import { runFields } from '../run/fields.ts';
import { checkRunId } from '../run/identity.ts';
import { isFinishReason } from '../run/reply.ts';
import { labelsOf } from '../run/request.ts';
import { isEndStatus } from '../run/result.ts';
import { enterHistory } from '../run/resume.ts';
import { isErrorData } from '../values/error-data.ts';
import { hasTexts, isCount, isObject } from '../values/json.ts';
import { checkMessage } from '../values/message-shape.ts';
import { isSpend, isUsage } from '../values/usage.ts';
import type { KeptFields } from './read-run.ts';
import { type RecordedRun, stepsOf } from './recorded-run.ts';

/** A run of a file, and what the file has of it besides. */
export interface FiledRun {
  readonly run: RecordedRun;
  readonly kept: KeptFields;
}

/** Returns whether a run of this status has ended. */
export function hasEndedStatus(status: RecordedRun['status']): boolean {
  return !standings.has(status);
}

const standings: ReadonlySet<unknown> = new Set(['live', 'interrupted', 'waiting', 'parked', 'queued']);

/** Which fields the head of a run may have, and what each must be. */
const heads: {
  readonly [Key in Exclude<keyof RecordedRun, 'earlier' | 'messages' | 'steps'>]-?: (value: unknown) => boolean;
} = {
  runId: (value) => checkRunId(value) === value,
  agentId: (value) => isText(value) && value !== '',
  status: (value) => isEndStatus(value) || standings.has(value),
  prompt: isText,
  callerId: isText,
  labels: (value) => labelsOf(value) !== undefined,
  inputs: isObject,
  output: isText,
  data: () => true,
  error: (value) => value === undefined || isErrorData(value),
  finishReason: (value) => value === undefined || isFinishReason(value),
  usage: isUsage,
  spend: (value) => value === undefined || isSpend(value),
  raisedSteps: (value) => value === undefined || isCount(value),
  forkedFrom: (value) => value === undefined || runFields.forkedFrom.isValid(value),
  retries: (value) => value === undefined || runFields.retries.isValid(value),
  parent: (value) => value === undefined || hasTexts(value, ['runId', 'callId']),
  imported: (value) => value === undefined || value === true,
};

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Reads the head of a run. @throws what is wrong with it */
export function headOfRun(line: Record<string, unknown>): { readonly head: Head; readonly kept: KeptFields } {
  const { pawl: _, version: __, kept = {}, ...head } = line;
  for (const [name, isRight] of Object.entries(heads)) {
    if (!isRight(head[name])) throw new TypeError(`${name} is not what it has to be`);
  }
  const unknown = Object.keys(head).find((name) => !Object.hasOwn(heads, name));
  if (unknown !== undefined) throw new TypeError(`a run has no field ${JSON.stringify(unknown.slice(0, 100))}`);
  if (!isObject(kept)) throw new TypeError('kept is not an object');
  for (const [name, value] of Object.entries(kept)) {
    const field = Object.hasOwn(runFields, name) ? runFields[name as keyof KeptFields] : undefined;
    if (!field?.isValid(value)) throw new TypeError(`kept.${name.slice(0, 100)} is not what it has to be`);
  }
  return { head: head as unknown as Head, kept: kept as KeptFields };
}

type Head = Omit<RecordedRun, 'earlier' | 'messages' | 'steps'>;

/** The lines of a run after its head. */
export interface RunParts {
  readonly earlier: readonly Message[];
  readonly opening: readonly Message[];
  readonly steps: readonly StepPart[];
  readonly rest: readonly Message[];
}

export interface StepPart {
  readonly phase?: string;
  readonly step: readonly Message[];
  readonly children: ReadonlyMap<string, string>;
}

/** Reads the line of a step. @throws what is wrong with it */
export function stepIn({ phase, step, children = [] }: Record<string, unknown>): StepPart {
  if (phase !== undefined && !isText(phase)) throw new TypeError('phase is not a text');
  const isPair = (pair: unknown) => Array.isArray(pair) && pair.length === 2 && pair.every(isText);
  if (!Array.isArray(children) || !children.every(isPair)) throw new TypeError('children are no list of pairs');
  for (const [, child] of children) checkRunId(child);
  return { ...(phase === undefined ? {} : { phase }), step: messagesIn(step, 'step'), children: new Map(children) };
}

/** Reads a list of messages. @throws what is wrong with one */
export function messagesIn(list: unknown, name: string): readonly Message[] {
  if (!Array.isArray(list)) throw new TypeError(`${name} is not a list of messages`);
  for (const [i, message] of list.entries()) checkMessage(message, `${name}[${i}]`);
  return list;
}

/** Makes a run of its lines. @throws {TRANSCRIPT_INVALID} if its messages do not follow one another */
export function runOf({ head, kept }: ReturnType<typeof headOfRun>, parts: RunParts): FiledRun {
  const { earlier, opening, steps, rest } = parts;
  enterHistory([...earlier, ...opening, ...steps.flatMap(({ step }) => step), ...rest]);
  const messages = [...opening];
  const phases = steps.flatMap(({ phase, step }) => {
    const from = messages.length;
    messages.push(...step);
    return phase === undefined ? [] : [{ from, name: phase }];
  });
  messages.push(...rest);
  const children = new Map(steps.flatMap((step) => [...step.children]));
  const read = stepsOf({ messages, from: opening.length, phases, childOf: ({ id }) => children.get(id) });
  if (read.length !== steps.length) throw new TypeError('its steps are not one answer each');
  return { run: { ...head, earlier, messages, steps: read }, kept };
}
