import type { BoardState, ModelView } from '../../../src/cli/ask/board-state.ts';

export function viewOf(id: string, view: Partial<ModelView> = {}): ModelView {
  return {
    id,
    state: 'thinking',
    text: '',
    steps: 0,
    inputTokens: 0,
    outputTokens: 0,
    costUsd: 0,
    latencyMs: 0,
    toolCalls: {},
    writes: 0,
    ...view,
  };
}

export function boardOf(models: readonly ModelView[], state: Partial<BoardState> = {}): BoardState {
  return { prompt: 'Why is it slow?', models, elapsedMs: 12_300, frame: 0, focus: 0, ...state };
}

/** Three models in the middle of an answer, at its end, and without one. */
export const three: readonly ModelView[] = [
  viewOf('sonnet', {
    state: 'calling-tools',
    activity: 'read_file src/fetch.ts',
    text: 'It waits for each file before it asks for the next one.\n\n    for (const file of files) await read(file);\n',
    steps: 2,
    inputTokens: 780,
    outputTokens: 32,
    costUsd: 0.0031,
    latencyMs: 4_200,
    toolCalls: { read_file: 2, grep: 1 },
    writes: 1,
  }),
  viewOf('gpt', {
    state: 'answered',
    text: 'Ask for all files at once.',
    steps: 1,
    inputTokens: 1_100,
    outputTokens: 104,
    latencyMs: 8_700,
  }),
  viewOf('qwen', { state: 'failed', error: 'connect ECONNREFUSED 127.0.0.1:11434: is the server running?' }),
];
