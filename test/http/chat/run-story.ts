import type { RunEvent, RunEventBody } from '../../../src/run/events/body.ts';
import type { Wait } from '../../../src/run/waits/wait.ts';
import type { AssistantMessage, ToolOutput } from '../../../src/values/message.ts';

export type Content = AssistantMessage['content'];
export type Body = RunEventBody;
export type Bodies = Body | readonly Body[];

export const usage = { inputTokens: 1, outputTokens: 2, reasoningTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** Gives events their run and their numbers. */
export function story(...bodies: readonly Bodies[]): RunEvent[] {
  return bodies.flat().map((body, i) => ({ ...(body as Body), runId: 'r', seq: i + 1, at: 1_000 + i }));
}

export const started: Body = { type: 'run.started' };

export function text(step: number, block: number, offset: number, piece: string): Body {
  return { type: 'model.delta', step, kind: 'text', block, offset, text: piece };
}

export function snapshot(step: number, ...content: Content): Body {
  return { type: 'step.snapshot', step, content };
}

/** The pieces of a message as a live reader gets them, `size` UTF-16 units each; what only the message has is left out. */
export function pieces(step: number, content: Content, size: number): Body[] {
  return content.flatMap((part, block): Body[] => {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return cut(part.text, size).map(({ offset, text: piece }) => ({
          ...{ type: 'model.delta', step, kind: part.type, block, offset, text: piece },
        }));
      case 'tool-call':
        return cut(JSON.stringify(part.input), size).map(({ offset, text: piece }) => ({
          ...{ type: 'tool.input', step, block, offset, text: piece },
          ...{ callId: part.toolCallId, name: part.toolName },
        }));
      case 'file':
        return [{ type: 'model.file', step, block, mediaType: part.mediaType }];
      default:
        return [];
    }
  });
}

function cut(whole: string, size: number): { offset: number; text: string }[] {
  const list: { offset: number; text: string }[] = [];
  for (let offset = 0; offset < whole.length; offset += size)
    list.push({ offset, text: whole.slice(offset, offset + size) });
  return list;
}

export function call(callId: string, name: string, input: unknown = {}): Content[number] {
  return { type: 'tool-call', toolCallId: callId, toolName: name, input };
}

export function begun(step: number, callId: string, name: string): Body {
  return { type: 'tool.started', step, callId, name, effect: 'once', input: {}, attempt: 1 };
}

export function done(step: number, callId: string, name: string, output: ToolOutput): Body {
  return { type: 'tool.done', step, callId, name, effect: 'once', output, ms: 1 };
}

export function stepDone(step: number, ...tools: string[]): Body {
  return { type: 'step.done', step, usage, tools };
}

export function approval(id: string, callId: string, tool: string, step = 1): Wait & { kind: 'approval' } {
  return {
    ...{ id, createdAt: 5, step, callId, tool, kind: 'approval', digest: `d-${id}`, prompt: `May I ${tool}?` },
    ...{ quorum: 1, votes: [], editable: false, onExpiry: 'deny' },
  };
}

export function question(id: string, callId: string, tool: string, step = 1): Wait & { kind: 'question' } {
  return { id, createdAt: 5, step, callId, tool, kind: 'question', question: 'Which?', options: ['a', 'b'] };
}

export function opened(wait: Wait): Body {
  return { type: 'wait.opened', wait, input: {} };
}

export function ended(status: 'ok' | 'error' | 'timeout' | 'cancelled' | 'killed' = 'ok', code = 'MODEL'): Body {
  if (status === 'ok') return { type: 'run.ended', status, output: '' };
  return { type: 'run.ended', status, output: '', error: { name: 'Error', code, message: 'secret of a provider' } };
}
