import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import { factsOf } from './facts.ts';
import type { FileContent, Listing } from './folder.ts';
import { describe, reportOf, type Surveyed, summaryOf } from './report.ts';

export interface PlannedCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, string>>;
}

/** What to do next: tools to call, or the answer. */
export type Step = { readonly calls: readonly PlannedCall[] } | { readonly answer: string };

interface AnsweredCall {
  readonly tool: string;
  readonly file: string;
  readonly output: LanguageModelV4ToolResultOutput;
}

const MAX_READS_PER_STEP = 8;
/** A folder of a few files is read in about so many steps. */
const STEPS = 12;

/**
 * The next step of a survey, from nothing but the transcript: list, read and note file by file, publish, answer.
 * @throws when the folder cannot be listed
 */
export function nextStep(prompt: LanguageModelV4Prompt): Step {
  const answered = answeredCalls(prompt);
  const listing = answered.find(({ tool }) => tool === 'list_files');
  if (!listing) return { calls: [{ tool: 'list_files', input: {} }] };
  const { folder, files, leftOut } = listingFrom(listing.output);
  const read = new Map(answered.filter(({ tool }) => tool === 'read_file').map(({ file, output }) => [file, output]));
  const calls = [...notesToAdd(files, read, answered), ...filesToRead(files, read)];
  if (calls.length > 0) return { calls };

  const survey = { folder, leftOut, files: files.map((file) => surveyed(file, read.get(file))) };
  const published = answered.findLast(({ tool, output }) => tool === 'publish_report' && !canRepeat(output));
  if (!published) return { calls: [{ tool: 'publish_report', input: { markdown: reportOf(survey) } }] };
  return { answer: `${summaryOf(survey)} ${whereabouts(published.output)}` };
}

function notesToAdd(
  files: readonly string[],
  read: ReadonlyMap<string, LanguageModelV4ToolResultOutput>,
  answered: readonly AnsweredCall[],
): PlannedCall[] {
  const isNoted = ({ tool, output }: AnsweredCall) => tool === 'add_note' && !output.type.startsWith('error');
  const noted = new Set(answered.filter(isNoted).map(({ file }) => file));
  const due = files.filter((file) => read.has(file) && !noted.has(file));
  return due.map((file) => ({ tool: 'add_note', input: { file, text: describe(surveyed(file, read.get(file))) } }));
}

function filesToRead(files: readonly string[], read: ReadonlyMap<string, unknown>): PlannedCall[] {
  const atOnce = Math.min(MAX_READS_PER_STEP, Math.ceil(files.length / STEPS));
  const unread = files.filter((file) => !read.has(file));
  return unread.slice(0, atOnce).map((file) => ({ tool: 'read_file', input: { file } }));
}

function surveyed(file: string, output: LanguageModelV4ToolResultOutput | undefined): Surveyed {
  if (output?.type !== 'json') return { file, skipped: `could not be read: ${textOf(output)}` };
  const content = output.value as unknown as FileContent;
  if ('skipped' in content) return { file, skipped: `${content.skipped}, ${content.bytes} bytes` };
  return { file, facts: factsOf(file, content.text), isCut: content.isCut === true };
}

function answeredCalls(prompt: LanguageModelV4Prompt): AnsweredCall[] {
  const inputs = new Map<string, unknown>();
  return prompt.flatMap((message) => {
    if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'tool-call') inputs.set(part.toolCallId, part.input);
    }
    if (message.role !== 'tool') return [];
    return message.content.flatMap((part) => {
      if (part.type !== 'tool-result') return [];
      const { file } = (inputs.get(part.toolCallId) ?? {}) as { file?: unknown };
      return [{ tool: part.toolName, file: typeof file === 'string' ? file : '', output: part.output }];
    });
  });
}

function listingFrom(output: LanguageModelV4ToolResultOutput): Listing {
  if (output.type === 'json') return output.value as unknown as Listing;
  // Another attempt would find the same: without this mark the run waits for its model, as for one that is away.
  throw Object.assign(new Error(`the folder cannot be surveyed: ${textOf(output)}`), { isRetryable: false });
}

function textOf(output: LanguageModelV4ToolResultOutput | undefined): string {
  return output && 'value' in output && typeof output.value === 'string' ? output.value : '';
}

/** A report of which it is not known whether it was published is not published again. */
function canRepeat(output: LanguageModelV4ToolResultOutput): boolean {
  return output.type === 'error-text' && !output.value.startsWith('Outcome unknown');
}

function whereabouts(output: LanguageModelV4ToolResultOutput): string {
  if (output.type === 'json') return `The report is ${(output.value as { report: string }).report}`;
  return 'Whether the report was published is not known: the process died meanwhile. Look for report.md among the output.';
}
