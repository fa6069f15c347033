import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';

/** A tool call that was answered. */
export interface AnsweredCall {
  readonly tool: string;
  readonly input: unknown;
  readonly output: LanguageModelV4ToolResultOutput;
}

/** What a model is sent, in the form in which the plans look at it. */
export interface Conversation {
  readonly system: string;
  /** What the user said first. */
  readonly asked: string;
  readonly answered: readonly AnsweredCall[];
}

export interface PlannedCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What to do next: tools to call, or the answer. */
export type Step = { readonly calls: readonly PlannedCall[] } | { readonly answer: string };

export function conversationOf(prompt: LanguageModelV4Prompt): Conversation {
  const system = prompt.flatMap((message) => (message.role === 'system' ? [message.content] : [])).join('\n');
  const user = prompt.find((message) => message.role === 'user')?.content ?? [];
  const asked = user.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  return { system, asked, answered: answeredCalls(prompt) };
}

function answeredCalls(prompt: LanguageModelV4Prompt): AnsweredCall[] {
  const inputs = new Map<string, unknown>();
  return prompt.flatMap((message) => {
    if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'tool-call') inputs.set(part.toolCallId, part.input);
    }
    if (message.role !== 'tool') return [];
    return message.content.flatMap((part) =>
      part.type === 'tool-result'
        ? [{ tool: part.toolName, input: inputs.get(part.toolCallId), output: part.output }]
        : [],
    );
  });
}

/** What an output says, when it is a text or an error. */
export function textOf(output: LanguageModelV4ToolResultOutput | undefined): string {
  return output && 'value' in output && typeof output.value === 'string' ? output.value : '';
}

export function hasFailed({ output }: AnsweredCall): boolean {
  return output.type.startsWith('error') || output.type === 'execution-denied';
}
