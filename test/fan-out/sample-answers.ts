import type { Checkpoint, ModelResponse, ResponseSnapshot } from 'pawl/fan-out';

/** An answer with every field in use. */
export const answer: ModelResponse = {
  modelId: 'fast',
  text: 'Yes.',
  latencyMs: 1_200,
  inputTokens: 30,
  outputTokens: 12,
  reasoningTokens: 4,
  costUsd: 0.25,
  proposedWrites: [
    { path: 'a.txt', content: 'new', base: null },
    { path: 'b.txt', content: '', delete: true, base: 'ab12' },
  ],
  toolCalls: { read_file: 2, write_file: 1 },
  interrupted: false,
  stopReason: 'answered',
  steps: 3,
};
/** What there is of a model that was cancelled before it said anything. */
export const nothing: ModelResponse = {
  ...{ modelId: 'deep', text: '', latencyMs: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 },
  ...{ proposedWrites: [], toolCalls: {}, interrupted: true, stopReason: 'cancelled', steps: 0 },
};

export const checkpointOf = (...responses: readonly ResponseSnapshot[]): Checkpoint => ({
  ...{
    version: 1,
    prompt: 'Which?',
    timestamp: '2026-11-21T23:00:00.000Z',
    adapterIds: ['fast', 'deep'],
    verbose: true,
  },
  responses,
});
