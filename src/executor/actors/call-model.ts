import { fromPromise } from 'xstate';
import type { ModelAnswer } from '../../../machines/context.ts';
import { callModel, type ModelRequest } from '../../model/call.ts';
import { type Retry, withRetries } from '../../model/retry.ts';
import { toErrorData } from '../../run/error-data.ts';
import { ModelError } from '../../run/errors.ts';
import type { Transcript } from '../../run/transcript.ts';
import { type Kernel, scopeOf } from '../scope.ts';

/** One model call, with its retries: the transcript goes out, one reply or one error comes back. It never rejects. */
export function callModelActor(kernel: Kernel) {
  return fromPromise<ModelAnswer, { transcript: Transcript; iteration: number }>(async ({ input, self }) => {
    try {
      const { model, toolbox, agent, signal, events } = scopeOf(kernel, self);
      if (!model || !toolbox) throw new ModelError('this run has no model');
      const { clock, defaults, random } = kernel.config;
      const attempts = defaults.modelAttempts;
      const step = input.iteration + 1;
      events.publish({ type: 'step.started', step });
      const request: ModelRequest = {
        system: agent.instructions,
        messages: input.transcript.slice(),
        hasUrls: input.transcript.hasUrls,
        tools: toolbox.definitions,
        signal,
        clock,
        firstChunkMs: defaults.firstChunkMs,
        chunkGapMs: defaults.chunkGapMs,
        onDelta: ({ type: kind, text }) => events.publish({ type: 'model.delta', step, kind, text }),
      };
      const onRetry = (retry: Retry) => events.publish({ type: 'model.retry', step, ...retry });
      return {
        reply: await withRetries(() => callModel(model, request), { signal, clock, attempts, random, onRetry }),
      };
    } catch (error) {
      return { error: toErrorData(error, 'MODEL') };
    }
  });
}
