import { fromPromise } from 'xstate';
import type { ToolAnswer } from '../../../machines/context.ts';
import { toErrorData } from '../../run/error-data.ts';
import type { OpenCall } from '../../run/open-step.ts';
import type { Progress } from '../../run/progress.ts';
import { runTool } from '../../tool/run.ts';
import { type Kernel, scopeOf } from '../scope.ts';

/** One tool call: whatever the tool does, one result for the model comes back. It never rejects. */
export function callToolActor(kernel: Kernel) {
  return fromPromise<ToolAnswer, { call: OpenCall; progress: Progress }>(
    async ({ input: { call, progress }, self }) => {
      try {
        const scope = scopeOf(kernel, self);
        const { callerId, channelId, guildId, parentRunId, prompt } = progress.meta;
        const { iteration, usage, transcript, inputs } = progress;
        const result = await runTool(scope.toolbox?.tools.get(call.name), call, {
          context: {
            runId: scope.runId,
            invocation: { callerId, channelId, guildId, parentRunId, prompt, inputs },
            runState: { iteration, usage, messages: transcript.length },
          },
          transcript: () => transcript.slice(),
          signal: scope.signal,
          clock: kernel.config.clock,
          timeoutMs: kernel.config.defaults.toolTimeoutMs,
        });
        return { callId: call.callId, result };
      } catch (error) {
        return { callId: call.callId, result: { type: 'error-text', value: toErrorData(error).message } };
      }
    },
  );
}
