import type { LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider';

/** The stream parts of a finished content. `isOpen`: its texts are never closed, as when a model falls silent. */
export function contentParts(content: readonly LanguageModelV4Content[], isOpen: boolean): LanguageModelV4StreamPart[] {
  return content.flatMap((part, i): LanguageModelV4StreamPart[] => {
    if (part.type !== 'text') return part.type === 'tool-call' ? [part] : [];
    const id = `text-${i}`;
    const begun: LanguageModelV4StreamPart[] = [
      { type: 'text-start', id },
      { type: 'text-delta', id, delta: part.text },
    ];
    return isOpen ? begun : [...begun, { type: 'text-end', id }];
  });
}
