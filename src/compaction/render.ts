import { isObject } from '../values/json.ts';
import type { Message, ToolCallPart, ToolOutput, ToolResultPart } from '../values/message.ts';
import { isToolError } from '../values/tool-output.ts';
import { redactedInput, type SecretFields, scrubber } from './secrets.ts';

interface Rendering {
  /** The maximum length of the text in characters. */
  readonly maxLength: number;
  readonly secrets: SecretFields;
  /** The whole history: a secret may appear outside of the rendered messages. */
  readonly history: readonly Message[];
}

/** Lengths to which one text or result is clipped. The first length with which everything fits is used. */
const CLIPS = [4_000, 1_000, 250] as const;

/**
 * Renders messages as a text for a summarizing model: who said what, calls with their input, results, files by name.
 * Thoughts are left out. Long results are clipped; if the text is still too long, its middle is left out.
 */
export function renderMessages(messages: readonly Message[], { maxLength, secrets, history }: Rendering): string {
  const scrub = scrubber(history, secrets);
  const lines = messages
    .flatMap((message) => linesOf(message, secrets))
    .map((line) => ({ ...line, text: scrub(line.text) }));
  for (const clip of CLIPS) {
    const text = lines.map(({ who, text }) => `${who}: ${clipped(text, clip)}`).join('\n\n');
    if (text.length <= maxLength) return text;
    if (clip === CLIPS.at(-1)) return clipped(text, maxLength);
  }
  return '';
}

interface Line {
  readonly who: string;
  readonly text: string;
}

function linesOf({ role, content }: Message, secrets: SecretFields): Line[] {
  if (typeof content === 'string') return [{ who: role, text: content }];
  return content.flatMap((part): Line[] => {
    switch (part.type) {
      case 'text':
        return part.text.trim() === '' ? [] : [{ who: role, text: part.text }];
      case 'tool-call':
        return [callLine(part, secrets)];
      case 'tool-result':
        return [resultLine(part)];
      case 'file':
        return [{ who: role, text: fileText(part) }];
      default:
        return [];
    }
  });
}

function callLine(call: ToolCallPart, secrets: SecretFields): Line {
  return { who: `assistant calls ${call.toolName}`, text: JSON.stringify(redactedInput(call, secrets)) };
}

function resultLine({ toolName, output }: ToolResultPart): Line {
  return { who: `${toolName} ${isToolError(output) ? 'fails' : 'answers'}`, text: outputText(output) };
}

function outputText(output: ToolOutput): string {
  if (output.type === 'execution-denied') return output.reason ?? 'denied';
  if (output.type !== 'content') return typeof output.value === 'string' ? output.value : JSON.stringify(output.value);
  return output.value.map((part) => (part.type === 'text' ? part.text : fileText(part))).join('\n');
}

/** Files are named, not sent. */
function fileText(part: unknown): string {
  const { mediaType, filename } = (isObject(part) ? part : {}) as { mediaType?: unknown; filename?: unknown };
  const name = typeof filename === 'string' ? ` ${filename}` : '';
  return `[file${name}, ${typeof mediaType === 'string' ? mediaType : 'of an unknown kind'}]`;
}

/** Keeps both ends of a text: the beginning of a result says what it is, the end often says how it ended. */
function clipped(text: string, most: number): string {
  if (text.length <= most) return text;
  const mark = (count: number) => `\n[… ${count} characters left out …]\n`;
  const room = Math.max(0, most - mark(text.length).length);
  const head = Math.ceil((room * 2) / 3);
  const tail = text.length - (room - head);
  return `${text.slice(0, head)}${mark(tail - head)}${text.slice(tail)}`;
}
