import { TranscriptInvalidError } from './errors.ts';
import { isObject } from './json.ts';

/*
 * The shape of messages that a host gives. The AI SDK's types (LanguageModelV4Prompt) tell it to a compiler, but messages from
 * JSON, a database or a web form were never compiled. Fields without a name here stay unchanged.
 */

type Fields = Record<string, unknown>;

/** Returns the problem with a part; undefined = none. */
type Check = (part: Fields) => string | undefined;

const isText = (value: unknown): value is string => typeof value === 'string';
const needsText =
  (...names: readonly string[]): Check =>
  (part) => {
    const missing = names.find((name) => !isText(part[name]));
    return missing === undefined ? undefined : `needs a ${missing} that is a string`;
  };

/** Where the bytes of a file are: the field that each kind of data must have. */
const fileData: Readonly<Record<string, Check>> = {
  data: needsText('data'),
  url: needsText('url'),
  text: needsText('text'),
  reference: ({ reference }) => (isObject(reference) ? undefined : 'needs a reference that is an object'),
};

function checkFile(kinds: readonly string[]): Check {
  return (part) => {
    const { data } = part;
    const check = isObject(data) && isText(data.type) && kinds.includes(data.type) ? fileData[data.type] : undefined;
    if (!check) return `needs a data that is an object with a type, which is ${kinds.join(', ')}`;
    return needsText('mediaType')(part) ?? within('data', check(data as Fields));
  };
}

function within(path: string, problem: string | undefined): string | undefined {
  return problem === undefined ? undefined : `${path} ${problem}`;
}

const file = checkFile(['data', 'url', 'text', 'reference']);

const outputs: Readonly<Record<string, Check>> = {
  text: needsText('value'),
  'error-text': needsText('value'),
  json: (output) => (output.value === undefined ? 'needs a value' : undefined),
  'error-json': (output) => (output.value === undefined ? 'needs a value' : undefined),
  'execution-denied': () => undefined,
  content: ({ value }) => (Array.isArray(value) ? contentProblem(value) : 'needs a value that is a list of parts'),
};

const resultParts: Readonly<Record<string, Check>> = { text: needsText('text'), file };

/** Results of older AI SDKs have more kinds of parts: of those only the type is checked. */
function contentProblem(parts: readonly unknown[]): string | undefined {
  for (const [i, part] of parts.entries()) {
    const check = Object.hasOwn(resultParts, kindOf(part)) ? resultParts[kindOf(part)] : undefined;
    const problem = isObject(part) ? (check ?? needsText('type'))(part) : 'must be an object';
    if (problem !== undefined) return `value[${i}] ${problem}`;
  }
  return undefined;
}

const kindOf = (part: unknown): string => (isObject(part) && isText(part.type) ? part.type : '');

function checkResult(part: Fields): string | undefined {
  return needsText('toolCallId', 'toolName')(part) ?? outputProblem(part.output, 'needs an output that is');
}

function outputProblem(output: unknown, needs: string): string | undefined {
  const check = isObject(output) && Object.hasOwn(outputs, kindOf(output)) ? outputs[kindOf(output)] : undefined;
  if (!check) return `${needs} an object with a type, which is ${Object.keys(outputs).join(', ')}`;
  return within('output', check(output as Fields));
}

/**
 * Checks the shape of a tool's output.
 * @param at names the output, for example `openStep.calls[0].result`
 * @throws {TRANSCRIPT_INVALID}
 */
export function checkOutputShape(output: unknown, at: string): void {
  const problem = outputProblem(output, 'must be');
  if (problem !== undefined) throw new TranscriptInvalidError(`${at}: ${problem}`);
}

function checkCall(part: Fields): string | undefined {
  const { providerExecuted } = part;
  const isFlag = providerExecuted === undefined || typeof providerExecuted === 'boolean';
  return isFlag ? needsText('toolCallId', 'toolName')(part) : 'needs a providerExecuted that is true or false';
}

function checkApproval(part: Fields): string | undefined {
  if (typeof part.approved !== 'boolean') return 'needs an approved that is true or false';
  return needsText('approvalId')(part);
}

/** The parts that a message of each role may have. */
const parts: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  user: { text: needsText('text'), file },
  assistant: {
    text: needsText('text'),
    reasoning: needsText('text'),
    file,
    'reasoning-file': checkFile(['data', 'url']),
    custom: needsText('kind'),
    'tool-call': checkCall,
    'tool-result': checkResult,
  },
  tool: { 'tool-result': checkResult, 'tool-approval-response': checkApproval },
};

const roles = ['system', ...Object.keys(parts)];

/**
 * Checks a message that a host gives: its role, and each of its parts as the AI SDK defines them.
 * @param at names the message, for example `history[2]`
 * @throws {TRANSCRIPT_INVALID} that names the part and the problem
 */
export function checkMessage(message: unknown, at: string): void {
  const problem = messageProblem(isObject(message) ? message : {});
  if (problem !== undefined) throw new TranscriptInvalidError(`${at}${problem}`);
}

function messageProblem(message: Fields): string | undefined {
  const problem = partsProblem(message);
  if (problem !== undefined || message.role === 'system') return problem;
  const twice = repeatedCall(message.content as readonly Fields[]);
  return twice === undefined ? undefined : `: two tool calls have the id ${shown(twice)}`;
}

/**
 * Returns what is wrong with the role or a part of a message; undefined = nothing. Calls of one message may share an id: a
 * run gives those of its model ids of their own.
 */
export function partsProblem({ role, content, providerOptions }: Fields): string | undefined {
  if (!isText(role) || !roles.includes(role)) return `: the role is ${shown(role)}; use ${roles.join(', ')}`;
  if (!isOptions(providerOptions)) return `: a ${role} message needs providerOptions that are an object`;
  if (role === 'system') return isText(content) ? undefined : ': a system message needs a content that is a string';
  if (!Array.isArray(content) || !content.every(isObject)) return `: a ${role} message needs a content of parts`;
  for (const [i, part] of content.entries()) {
    const problem = partProblem(part, role);
    if (problem !== undefined) return `.content[${i}]: ${problem}`;
  }
  return undefined;
}

function partProblem(part: Fields, role: string): string | undefined {
  const known = parts[role] ?? {};
  const check = Object.hasOwn(known, kindOf(part)) ? known[kindOf(part)] : undefined;
  if (!check) return `a ${role} message has no part of type ${shown(part.type)}; use ${Object.keys(known).join(', ')}`;
  if (!isOptions(part.providerOptions)) return `a ${kindOf(part)} part needs providerOptions that are an object`;
  const problem = check(part);
  return problem === undefined ? undefined : `a ${kindOf(part)} part ${problem}`;
}

function isOptions(value: unknown): boolean {
  return value === undefined || value === null || isObject(value);
}

/** Returns the id that two calls of one message share. Their results would be ambiguous. */
function repeatedCall(content: readonly Fields[]): string | undefined {
  const seen = new Set<string>();
  for (const { type, toolCallId, providerExecuted } of content) {
    if (type !== 'tool-call' || providerExecuted === true || !isText(toolCallId)) continue;
    if (seen.has(toolCallId)) return toolCallId;
    seen.add(toolCallId);
  }
  return undefined;
}

function shown(value: unknown): string {
  return isText(value) ? JSON.stringify(value.slice(0, 100)) : typeof value;
}
