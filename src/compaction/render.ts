import { isObject } from '../values/json.ts';
import {
  isToolError,
  type Message,
  type ToolCallPart,
  type ToolOutput,
  type ToolResultPart,
} from '../values/message.ts';
import { redactedInput, type SecretFields, scrubber } from './secrets.ts';

export interface Rendering {
  /** The most characters the text may have. */
  readonly maxLength: number;
  readonly secrets: SecretFields;
  /** All of the history: a secret may have been given outside of what is rendered. */
  readonly history: readonly Message[];
}

/** How much of one text or result is kept; the first that makes all of it fit is taken. */
const CLIPS = [4_000, 1_000, 250] as const;

/**
 * Messages as a text for a model that sums them up: who said what, calls with their input, results, files by their names.
 * Thoughts are left out. Long results are clipped; what is too long even so loses its middle.
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

/** A file is named, not sent. */
function fileText(part: unknown): string {
  const { mediaType, filename } = (isObject(part) ? part : {}) as { mediaType?: unknown; filename?: unknown };
  const name = typeof filename === 'string' ? ` ${filename}` : '';
  return `[file${name}, ${typeof mediaType === 'string' ? mediaType : 'of an unknown kind'}]`;
}

/** Both ends of a text: what a result begins with says what it is, and its end often says how it went. */
function clipped(text: string, most: number): string {
  if (text.length <= most) return text;
  const mark = (count: number) => `\n[… ${count} characters left out …]\n`;
  const room = Math.max(0, most - mark(text.length).length);
  const head = Math.ceil((room * 2) / 3);
  const tail = text.length - (room - head);
  return `${text.slice(0, head)}${mark(tail - head)}${text.slice(tail)}`;
}
