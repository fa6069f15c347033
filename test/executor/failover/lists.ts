import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { APICallError } from '@ai-sdk/provider';
import { type Budget, type ModelEntry, memoryStore, type RunEvent, type RunOutcome } from 'pawl';
import { fail, type ScriptedEntry, type ScriptedModel, scriptedModel, testClock } from 'pawl/testing';
import { modelUses, type RunUse } from '../../../src/kit.ts';
import { type HostOptions, hostOf, toolOf } from '../../fixtures/host.ts';

export const noon = Date.UTC(2026, 0, 1, 12);

/** A scripted model with the name of one: `anthropic/opus`. */
export function named(name: string, script: readonly ScriptedEntry[]): ScriptedModel {
  const [provider = '', modelId = ''] = name.split('/');
  return Object.assign(scriptedModel(script), { provider, modelId });
}

/** A refusal of a provider, as the packages of the AI SDK give it. */
export const refusal = (statusCode: number, responseHeaders: Record<string, string> = {}, message = 'no') =>
  fail(new APICallError({ message, url: 'http://x', requestBodyValues: {}, statusCode, responseHeaders }));

export const overloaded = refusal(529);

type Listed = ScriptedModel | ModelEntry;

/** A host whose tier `fast` is a list, with a test clock, a store, and what its runs published. */
export function listHost(list: readonly Listed[], options: HostOptions = {}) {
  const clock = testClock(noon);
  const events: RunEvent[] = [];
  const outcomes: RunOutcome[] = [];
  const store = memoryStore({ clock });
  const observers = [{ onEvent: (event: RunEvent) => events.push(event) }];
  const host = hostOf({
    ...{ models: { fast: list } as never, clock, store, observers, random: () => 0.5, tools: [toolOf('look')] },
    ...{ retention: { records: '1d' }, onOutcome: (outcome: RunOutcome) => void outcomes.push(outcome) },
    ...options,
  });
  return {
    ...host,
    clock,
    store,
    events,
    outcomes,
    of: (type: RunEvent['type']) => events.filter((event) => event.type === type),
  };
}

/** A run of a list to its end, or to where it rests; time passes as far as it must. */
export async function played(list: readonly Listed[], options: Parameters<typeof listHost>[1] = {}) {
  const host = listHost(list, options);
  const run = await host.start({ runId: 'r' });
  for (let second = 0; second < 40; second++) await host.clock.advance(500);
  const record = await host.store.load('r');
  // A run that has ended has no record.
  const used = () => modelUses((run.actor.getSnapshot() as { context: { progress: RunUse } }).context.progress);
  return { ...host, run, record, used };
}

/** A model that reports so many input tokens, and then breaks off. */
export function brokenAfter(model: ScriptedModel, inputTokens: number): ScriptedModel {
  const usage = { inputTokens: { total: inputTokens }, outputTokens: { total: 0 } };
  const parts = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'half of' },
    { type: 'finish', finishReason: { unified: 'error', raw: 'overloaded' }, usage },
  ] as unknown as LanguageModelV4StreamPart[];
  return Object.assign(model, { doStream: async () => ({ stream: ReadableStream.from(parts) }) });
}

/** The methods of a budget, of which a test replaces some. */
export const methodsOf = (budget: Budget): Budget => ({
  check: (caller) => budget.check(caller),
  reserve: (caller, wish) => budget.reserve(caller, wish),
  commit: (reservation, use) => budget.commit(reservation, use),
  refund: (reservation) => budget.refund(reservation),
});
