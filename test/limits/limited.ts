import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { type ExecutorOptions, type LimitRule, memoryStore, type RunEvent, type RunOutcome, rateLimits } from 'pawl';
import { type ScriptedEntry, scriptedModel, type TestClock, testClock } from 'pawl/testing';
import { type HostOptions, hostOf, toolOf } from '../fixtures/host.ts';

export const noon = Date.UTC(2026, 0, 1, 12);

export interface LimitedOptions extends HostOptions {
  readonly clock?: TestClock;
  readonly rules?: readonly LimitRule[];
  readonly holdMs?: number;
  readonly play?: readonly ScriptedEntry[];
}

/** A model that notes when it is called, in seconds after noon. */
export function timed(script: readonly ScriptedEntry[], clock: TestClock) {
  const model = scriptedModel(script);
  const at: number[] = [];
  const { doStream } = model;
  const stream: typeof doStream = (options) => {
    at.push((clock.now() - noon) / 1_000);
    return doStream.call(model, options);
  };
  return { model: Object.assign(model, { doStream: stream }), at };
}

/** A model that answers with these parts of texts in turn, each with how it ends, and what it used. */
export function speaking(
  answers: readonly { readonly text: string; readonly finish?: string; readonly used?: number }[],
  clock: TestClock,
) {
  const { model, at } = timed([], clock);
  const doStream = async () => {
    at.push((clock.now() - noon) / 1_000);
    const { text = 'more than was asked', finish = 'stop', used = 0 } = answers[at.length - 1] ?? {};
    const usage = { inputTokens: { total: used }, outputTokens: { total: 0 } };
    const parts = [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: text },
      { type: 'text-end', id: 't' },
      { type: 'finish', finishReason: { unified: finish, raw: finish }, usage },
    ] as unknown as LanguageModelV4StreamPart[];
    return { stream: ReadableStream.from(parts) };
  };
  return { model: Object.assign(model, { doStream }), at };
}

/** A host with limits, on a test clock, with a store, what its runs published, and when its model was called. */
export function limitedHost({ rules, holdMs, play = [], ...options }: LimitedOptions) {
  const clock = options.clock ?? testClock(noon);
  const store = (options.store ?? memoryStore({ clock })) as ReturnType<typeof memoryStore>;
  const { model, at } = timed(play, clock);
  const events: RunEvent[] = [];
  const outcomes: RunOutcome[] = [];
  const given = rules ?? [{ by: 'model', requestsPerMinute: 6 }];
  const limits = rateLimits({ store, rules: given, holdMs, clock });
  const host = hostOf({
    ...{ models: { fast: model }, clock, store, random: () => 0.5, tools: [toolOf('look')], limits },
    ...{ observers: [{ onEvent: (event: RunEvent) => void events.push(event) }] },
    onOutcome: (outcome: RunOutcome) => void outcomes.push(outcome),
    ...options,
  } as Partial<ExecutorOptions>);
  const of = <Type extends RunEvent['type']>(type: Type) =>
    events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
  return { ...host, model, at, clock, store, events, outcomes, of };
}
