import { factsOf } from '../survey/facts.ts';
import type { FileContent, Listing } from '../survey/folder.ts';
import { type Part, type Review, type Reviews, type Survey, totalsOf } from './answers.ts';
import { type AnsweredCall, type Conversation, hasFailed, type Step, textOf } from './conversation.ts';
import { reportOf } from './report.ts';
import { reviewerStep } from './reviewer-plan.ts';

const plans: Readonly<Record<string, (conversation: Conversation) => Step>> = {
  surveyor,
  editor,
  reviewer: reviewerStep,
  publisher,
  titler,
};

/**
 * The next step of the agent that is asked: the first line of the instructions names it. Nothing is remembered, so that
 * another process continues in the same way.
 * @throws when the folder cannot be listed, or no agent of this example is asked
 */
export function nextStep(conversation: Conversation): Step {
  const role = /^Role: (\w+)\./.exec(conversation.system || conversation.asked)?.[1] ?? '';
  const plan = Object.hasOwn(plans, role) ? plans[role] : undefined;
  if (!plan) throw final('the planner knows the roles of this example only; set PAWL_MODEL=provider/model');
  return plan(conversation);
}

/** Lists, reads one file of each part, answers. */
function surveyor({ answered }: Conversation): Step {
  const listing = answered.find(({ tool }) => tool === 'list_files');
  if (!listing) return { calls: [{ tool: 'list_files', input: {} }] };
  if (listing.output.type !== 'json') throw final(`the folder cannot be listed: ${textOf(listing.output)}`);
  const { folder, files, leftOut } = listing.output.value as unknown as Listing;
  const parts = [...Map.groupBy(files, partOf)].map(([part, within]) => ({ part, files: within }));
  const read = answered.filter(({ tool }) => tool === 'read_file');
  if (parts.length > read.length) {
    return { calls: parts.map((part) => ({ tool: 'read_file', input: { file: introductionOf(part.files) } })) };
  }
  const told = parts.map((part, i): Part => ({ part: part.part, about: aboutOf(read[i]), files: part.files }));
  return { answer: JSON.stringify({ folder, leftOut, parts: told } satisfies Survey) };
}

function partOf(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : '.';
}

function introductionOf(files: readonly string[]): string {
  return files.find((file) => /(?:^|\/)readme(?:\.\w+)?$/i.test(file)) ?? files[0] ?? '';
}

function aboutOf(call: AnsweredCall | undefined): string {
  if (call?.output.type !== 'json') return '';
  const content = call.output.value as unknown as FileContent;
  return 'text' in content ? factsOf(content.file, content.text).firstSentence : '';
}

/** Puts a reviewer to work on each part, all in one message, and hands on what they say. */
function editor({ system, answered }: Conversation): Step {
  const { parts } = jsonAfter<Survey>(system, 'The survey');
  if (answered.length < parts.length) {
    const prompts = parts.map(({ part, files }) => JSON.stringify({ part, files }));
    return { calls: prompts.map((prompt) => ({ tool: 'agent__reviewer', input: { prompt } })) };
  }
  const reviews = answered.flatMap(({ output }) => (output.type === 'json' ? [output.value as unknown as Review] : []));
  const failed = answered.flatMap((call, i) =>
    hasFailed(call) ? [{ part: parts[i]?.part ?? '', why: textOf(call.output) }] : [],
  );
  return { answer: JSON.stringify({ reviews, failed } satisfies Reviews) };
}

/** Publishes, once: when the outcome is unknown, it looks first. */
function publisher({ system, answered }: Conversation): Step {
  const reviews = jsonAfter<Reviews>(system, 'The reviews');
  const last = answered.at(-1);
  const isUnknown = last?.tool === 'publish_report' && textOf(last.output).startsWith('Outcome unknown');
  if (isUnknown) return { calls: [{ tool: 'find_report', input: {} }] };
  const report = last?.output.type === 'json' ? (last.output.value as { report?: string }).report : undefined;
  if (report === undefined) {
    const markdown = reportOf(jsonAfter<Survey>(system, 'The survey'), reviews);
    return { calls: [{ tool: 'publish_report', input: { markdown } }] };
  }
  return { answer: JSON.stringify({ ...totalsOf(reviews), report }) };
}

/** How many findings, and of what most. */
function titler({ asked }: Conversation): Step {
  const [, part = '', findings = ''] = /^Part: (.*)\nFindings:\n([\s\S]*)$/m.exec(asked) ?? [];
  const kinds = findings.split('\n').flatMap((line) => (line === '' ? [] : [line.slice(0, line.indexOf(':'))]));
  const byKind = [...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => ({ kind, count: all.length }));
  const [most] = byKind.sort((a, b) => b.count - a.count || (a.kind < b.kind ? -1 : 1));
  if (!most) return { answer: `${part}: nothing to look at` };
  return { answer: `${part}: ${kinds.length} to look at, most of all: ${most.kind}` };
}

/** The line of JSON that follows a name in the instructions. */
function jsonAfter<T>(system: string, name: string): T {
  const line = system.split('\n').findLast((each) => each.startsWith(`${name}: `)) ?? '';
  return JSON.parse(line.slice(name.length + 2)) as T;
}

/** An error that another attempt would meet again: without the mark the run waits for its model, as for one that is away. */
function final(message: string): Error {
  return Object.assign(new Error(message), { isRetryable: false });
}
