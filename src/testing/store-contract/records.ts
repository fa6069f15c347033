import assert from 'node:assert/strict';
import { RECORD_VERSION, type RunCheckpoint } from '../../record/checkpoint.ts';
import { headOf, type RunDelta } from '../../record/delta.ts';
import { rowsOf } from '../../run/field-rows.ts';
import type { RunEnd } from '../../run/outcome.ts';
import type { RunCheckpointMeta } from '../../run/request.ts';
import type { EndedFacts, RunOutcome } from '../../run/result.ts';
import type { RestingStore, TakeDueOptions, TakenRun } from '../../store/due-port.ts';
import type { Claim, ClaimOptions, OwningStore } from '../../store/port.ts';
import type { Message } from '../../values/message.ts';
import { noUsage } from '../../values/usage.ts';

/** Returns the attributes of a sample record. */
export function sampleMeta(runId: string): RunCheckpointMeta {
  return {
    runId,
    agentId: 'agent-1',
    agentName: 'Writer',
    callerId: 'caller-1',
    channelId: 'channel-1',
    guildId: 'guild-1',
    prompt: 'write a line',
    modelTier: 'fast',
    parentRunId: 'parent-1',
  };
}

/** Returns a user message of a sample record. */
export function userMessage(text: string): Message {
  return { role: 'user', content: [{ type: 'text', text }] };
}

/** Returns a sample record with the required fields, and those of `fields`. */
export function sampleRecord(runId: string, fields: Partial<RunCheckpoint> = {}): RunCheckpoint {
  return asWritten({
    version: RECORD_VERSION,
    meta: sampleMeta(runId),
    messages: [userMessage('write a line')],
    iteration: 0,
    completedPhases: [],
    updatedAt: 1_700_000_000_000,
    revision: 1,
    usage: noUsage,
    attempts: 1,
    ...fields,
  });
}

const order: readonly string[] = [
  ...['version', 'revision', 'updatedAt', 'seq'],
  ...rowsOf('identity', 'head', 'messages', 'start').map(({ key }) => key),
];

/** A record with its fields in the order of an executor; other fields come last. */
function asWritten(record: RunCheckpoint): RunCheckpoint {
  const known = order.flatMap((key) => (key in record ? [[key, record[key as keyof RunCheckpoint]]] : []));
  return { ...Object.fromEntries(known), ...record };
}

/** Returns the delta that adds messages to a sample record, and the record with them. */
export function nextStep(
  record: RunCheckpoint,
  messages: readonly Message[] = [userMessage(`message ${record.messages.length}`)],
  fields: Partial<RunCheckpoint> = {},
): { readonly delta: RunDelta; readonly record: RunCheckpoint } {
  const grown = asWritten({
    ...record,
    iteration: record.iteration + 1,
    revision: record.revision + 1,
    updatedAt: record.updatedAt + 1_000,
    ...fields,
    messages: [...record.messages, ...messages],
  });
  const { runId } = record.meta;
  const delta = { runId, revision: grown.revision, from: record.messages.length, messages, head: headOf(grown) };
  return { delta, record: grown };
}

/** Returns a sample outcome of a run. */
export function sampleOutcome(
  runId: string,
  fields: Partial<EndedFacts> = {},
  end: RunEnd = { status: 'ok' },
): RunOutcome {
  const { status, ...rest } = end;
  return {
    runId,
    status,
    output: 'a line',
    usage: { ...noUsage, inputTokens: 12, outputTokens: 3 },
    iterations: 2,
    phases: [],
    undelivered: [],
    durable: true,
    saveErrors: 0,
    outcomeId: `${runId}:1`,
    ...fields,
    ...rest,
  } as RunOutcome;
}

/** Returns a sample record in the middle of a step: one call answered, one running, one waiting. */
export function openStepRecord(runId: string): RunCheckpoint {
  const call = (callId: string) => ({
    type: 'tool-call' as const,
    toolCallId: callId,
    toolName: 'send',
    input: { to: callId },
  });
  const line = (callId: string) => ({ callId, name: 'send', input: { to: callId } });
  return sampleRecord(runId, {
    iteration: 2,
    openStep: {
      message: { role: 'assistant', content: [{ type: 'text', text: 'sending' }, call('a'), call('b'), call('c')] },
      calls: [
        { ...line('a'), effect: 'once', state: 'done', attempt: 1, result: { type: 'text', value: 'sent' } },
        { ...line('b'), effect: 'idempotent', state: 'started', attempt: 2 },
        { ...line('c'), effect: 'read', state: 'planned', attempt: 0 },
      ],
    },
  });
}

/** Returns a sample record of a pipeline in its second phase. */
export function pipelineRecord(runId: string): RunCheckpoint {
  return sampleRecord(runId, {
    messages: [userMessage('polish it')],
    iteration: 3,
    completedPhases: [{ name: 'draft', output: 'a first line', index: 0, hash: 'abc' }],
    openPhase: { index: 1, hash: 'def', iteration: 1 },
  });
}

/** Returns a sample record with every possible field. */
export function fullRecord(runId: string): RunCheckpoint {
  return {
    ...openStepRecord(runId),
    usage: { inputTokens: 1, outputTokens: 2, reasoningTokens: 3, cacheReadTokens: 4, cacheWriteTokens: 5 },
    counters: { failedSteps: 1, repeats: { abcdef: 2 } },
    attempts: 2,
    elapsedMs: 1_234.5,
    definition: { version: '2', hash: 'a1b2' },
    undelivered: [userMessage('and one more thing')],
    outcome: sampleOutcome(runId, {}, { status: 'error', error: { name: 'Error', code: 'MODEL', message: 'down' } }),
    parked: { code: 'RUN_PARKED', reason: 'three starts without progress' },
    inputs: { ticket: 7, nested: { list: [1, null, 'x'] } },
    images: [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'aGVsbG8=' } }],
  };
}

/** A claim that outlives a case, ms. */
export const LONG_MS = 600_000;

/** A run that waits for a time. */
export const waitingForTime: NonNullable<RunCheckpoint['waiting']> = {
  waits: [{ id: 'w', kind: 'timer', createdAt: 1, step: 1 }],
  settled: [],
};

/** Claims a run that no process has. */
export async function claimFor(store: OwningStore, runId: string, by: ClaimBy = {}): Promise<Claim> {
  const { owner = 'me', ...options } = by;
  const claim = await store.claim(runId, owner, LONG_MS, options);
  assert(claim, `${owner} should have got ${runId}`);
  return claim;
}

interface ClaimBy extends ClaimOptions {
  readonly owner?: string;
}

/** Saves a first record under a new claim. */
export async function ownRun(store: OwningStore, runId: string, fields: Partial<RunCheckpoint> = {}): Promise<Claim> {
  const claim = await claimFor(store, runId);
  await store.save(sampleRecord(runId, fields), { claim });
  return claim;
}

/** The clock of the store, ms. */
export async function nowOf(store: RestingStore): Promise<number> {
  return Math.floor((await store.due.list({ limit: 1 })).now);
}

/** Takes due runs, 1,000 at most. */
export async function takeRuns(store: RestingStore, wish: Partial<TakeDueOptions> = {}): Promise<readonly TakenRun[]> {
  return (await store.due.take({ owner: 'me', ttlMs: LONG_MS, limit: 1_000, ...wish })).claims;
}

/** Takes due runs. @returns their ids, in order */
export async function takeIds(store: RestingStore, wish?: Partial<TakeDueOptions>): Promise<string[]> {
  return (await takeRuns(store, wish)).map(({ runId }) => runId).sort();
}
