import type { FileContent } from '../survey/folder.ts';
import type { Review } from './answers.ts';
import { type Finding, findingsIn } from './checks.ts';
import {
  type AnsweredCall,
  type Conversation,
  hasFailed,
  type PlannedCall,
  type Step,
  textOf,
} from './conversation.ts';

const READS_PER_STEP = 4;

/** Reads a few files a step and takes down what it found in those before; then asks for a title, and answers. */
export function reviewerStep({ asked, answered }: Conversation): Step {
  const { part, files } = JSON.parse(asked) as { part: string; files: readonly string[] };
  const read = answered.filter(({ tool }) => tool === 'read_file');
  const texts = read.flatMap(contentOf).filter((content) => 'text' in content);
  const findings = texts.flatMap(({ file, text }) => findingsIn(file, text));
  const calls = [...findingsToAdd(findings, answered), ...filesToRead(files, read)];
  if (calls.length > 0) return { calls };

  const titled = answered.findLast(({ tool }) => tool === 'skill__title');
  const lines = findings.map(({ file, line, what }) => `${what}: ${file}:${line}`).join('\n');
  if (!titled) return { calls: [{ tool: 'skill__title', input: { part, findings: lines } }] };
  const title = hasFailed(titled) ? part : textOf(titled.output);
  return { answer: JSON.stringify({ part, title, files: texts.length, findings } satisfies Review) };
}

function contentOf({ output }: AnsweredCall): FileContent[] {
  return output.type === 'json' ? [output.value as unknown as FileContent] : [];
}

function findingsToAdd(findings: readonly Finding[], answered: readonly AnsweredCall[]): PlannedCall[] {
  const keyOf = ({ file, line, what }: Finding) => `${file}:${line}:${what}`;
  const added = answered.filter((call) => call.tool === 'add_finding' && !hasFailed(call));
  const known = new Set(added.map(({ input }) => keyOf(input as Finding)));
  const due = findings.filter((finding) => !known.has(keyOf(finding)));
  return due.map((finding) => ({ tool: 'add_finding', input: { ...finding } }));
}

function filesToRead(files: readonly string[], read: readonly AnsweredCall[]): PlannedCall[] {
  const unread = files.slice(read.length, read.length + READS_PER_STEP);
  return unread.map((file) => ({ tool: 'read_file', input: { file } }));
}
