import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import type { ToolFacts } from '../run/progress.ts';
import { readProperty } from '../values/error-data.ts';
import { UnknownToolError } from '../values/errors.ts';
import { isObject, type JsonObject } from '../values/json.ts';
import { printable } from '../values/texts/model-text.ts';
import { isToolName } from '../values/tool-name.ts';
import {
  type AiSdkTool,
  type AiSdkToolEntry,
  fromAiSdkEntry,
  fromAiSdkTool,
  isAiSdkEntry,
  readAiSdkEntry,
} from './ai-sdk.ts';
import { checkName, type Tool } from './define-tool.ts';

/**
 * An agent's tools: a list of tools and of names of registered ones, or a record by name. A record holds AI SDK tools (`{
 * weather }`), or AI SDK tools with options (`{ weather: { tool: weather, effect: 'read' } }`). Absent = none.
 */
export type ToolEntries =
  | readonly (Tool | string)[]
  | { readonly [name: string]: AiSdkTool | AiSdkToolEntry }
  | undefined;

/** The tools of a run, in all forms that the runtime needs. */
export interface Toolbox {
  readonly tools: ReadonlyMap<string, Tool>;
  /** For the model. */
  readonly definitions: readonly LanguageModelV4FunctionTool[];
  /** For the run's ledger. */
  readonly facts: ToolFacts;
}

/**
 * Looks up an agent's tools by name, and reads their schemas for the model.
 * @throws {UNKNOWN_TOOL} for a name that is not registered; the message lists the registered ones
 * @throws {TypeError} for two tools of one name, a name that cannot be called, or an entry that is not a tool
 */
export function toolboxOf(entries: ToolEntries, registry: readonly Tool[]): Toolbox {
  const tools = new Map<string, Tool>();
  for (const tool of resolve(entries, registry)) {
    if (!isToolName(tool.name)) {
      throw new TypeError(`"${printable(tool.name)}" is not a tool name; use 1 to 128 of A-Z a-z 0-9 _ . : -`);
    }
    if (tools.has(tool.name)) throw new TypeError(`there are two tools named "${tool.name}"`);
    tools.set(tool.name, tool);
  }
  const list = [...tools.values()];
  const facts = Object.fromEntries(list.map((tool) => [tool.name, factsOf(tool)]));
  return { tools, definitions: list.map(definitionOf), facts };
}

/**
 * Reads the tools in an agent's definition into a frozen list or record. A run's start looks up names.
 * @throws {TypeError} for an entry that is not a tool, and for an invalid effect or limit
 */
export function readEntries(of: string, entries: ToolEntries & object): ToolEntries & object {
  if (Array.isArray(entries)) {
    return Object.freeze(entries.map((entry, i) => (typeof entry === 'string' ? entry : checked(entry, i, `${of}: `))));
  }
  if (!isObject(entries)) throw new TypeError(`${of}: tools must be a list, or a record of AI SDK tools`);
  return Object.freeze(
    Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, readEntry(of, name, entry)])),
  );
}

function readEntry(of: string, name: string, entry: unknown): AiSdkTool | AiSdkToolEntry {
  if (!isObject(entry)) throw new TypeError(`${of}: tools.${name} is not a tool`);
  checkName(name);
  if (!isAiSdkEntry(entry)) return withoutTraits(name, entry);
  if (!isTool(entry.tool)) return readAiSdkEntry(name, entry);
  throw new TypeError(
    `tools.${name}.tool was made with defineTool and has its own effect and limits: pass it without an entry`,
  );
}

/**
 * Checks that the tools of the AI SDK in an agent's definition can be used. A lazy schema (a function) is read by the first run.
 * @throws {TypeError} for a schema that is none @throws {UNSUPPORTED} for a tool without `execute`
 */
export function checkEntries(entries: ToolEntries): void {
  if (entries === undefined || Array.isArray(entries)) return;
  for (const [name, entry] of Object.entries(entries)) if (!isLazy(entry)) fromRecord(name, entry);
}

function isLazy(entry: AiSdkTool | AiSdkToolEntry): boolean {
  const tool = isAiSdkEntry(entry) ? entry.tool : entry;
  const schema = tool.inputSchema ?? tool.parameters;
  return typeof schema === 'function' && readProperty(schema, '~standard') === undefined;
}

/** A tool of the AI SDK has no such fields: without this check they would be ignored, and a call would be `once`. */
function withoutTraits(name: string, tool: AiSdkTool): AiSdkTool {
  const trait = isTool(tool)
    ? undefined
    : ['effect', 'timeoutMs', 'concurrency'].find((key) => Object.hasOwn(tool, key));
  if (trait === undefined) return tool;
  throw new TypeError(
    `tools.${name}: ${trait} is among the tool's own fields and is not read; write { tool: …, ${trait}: … }`,
  );
}

/** Returns the name by which the model calls a tool of an agent's definition. */
export const nameOfEntry = (entry: Tool | string): string => (typeof entry === 'string' ? entry : entry.name);

/**
 * Returns the JSON Schema of a tool's input, as a model reads it; undefined if there is no such tool here, or it cannot be read.
 * @param from.entries the tools of an agent @param from.registry the tools that they name
 */
export function inputSchemaOf(
  name: string,
  { entries, registry }: { readonly entries: ToolEntries; readonly registry: readonly Tool[] },
): JsonObject | undefined {
  try {
    const entry = entryNamed(name, entries);
    return (typeof entry === 'string' ? find(name, registry) : entry)?.input.jsonSchema;
  } catch {
    return undefined;
  }
}

function entryNamed(name: string, entries: ToolEntries = []): Tool | string | undefined {
  if (Array.isArray(entries)) return entries.find((each) => nameOfEntry(each) === name);
  return Object.hasOwn(entries, name)
    ? fromRecord(name, (entries as { readonly [name: string]: unknown })[name])
    : undefined;
}

/** Returns a toolbox with more tools. @throws {TypeError} for two tools of one name */
export function joined(toolbox: Toolbox, more: readonly Tool[]): Toolbox {
  return more.length === 0 ? toolbox : toolboxOf([...toolbox.tools.values(), ...more], []);
}

/**
 * Returns a toolbox with only some of the tools, as a phase has them.
 * @throws {UNKNOWN_TOOL} for a name that is not in it
 */
export function restrict(toolbox: Toolbox, names: readonly string[]): Toolbox {
  const tools = new Map(names.map((name) => [name, find(name, [...toolbox.tools.values()])]));
  const definitions = toolbox.definitions.filter(({ name }) => tools.has(name));
  const facts = Object.fromEntries(Object.entries(toolbox.facts).filter(([name]) => tools.has(name)));
  return { tools, definitions, facts };
}

function factsOf({ effect, concurrency, isRun, isWait, needsApproval = false }: Tool): ToolFacts[string] {
  const asks = needsApproval !== false;
  return {
    effect,
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(isRun ? { isRun } : {}),
    ...(isWait ? { isWait } : {}),
    ...(asks ? { asks } : {}),
  };
}

function resolve(entries: ToolEntries, registry: readonly Tool[]): Tool[] {
  if (entries === undefined) return [];
  if (Array.isArray(entries))
    return entries.map((entry, i) => (typeof entry === 'string' ? find(entry, registry) : checked(entry, i)));
  return Object.entries(entries).map(([name, tool]) => fromRecord(name, tool));
}

function find(name: string, registry: readonly Tool[]): Tool {
  const tool = registry.find((each) => each.name === name);
  if (tool !== undefined) return tool;
  const names = registry.map((each) => each.name).join(', ');
  throw new UnknownToolError(
    `no tool named "${name}" is registered; ${names === '' ? 'none is' : `registered: ${names}`}`,
  );
}

function checked(entry: unknown, index: number, of = ''): Tool {
  if (isTool(entry)) return entry;
  throw new TypeError(
    `${of}tools[${index}] is neither a tool made with defineTool nor a name; AI SDK tools have no name: pass them as { name: tool }`,
  );
}

function fromRecord(name: string, tool: unknown): Tool {
  if (!isObject(tool)) throw new TypeError(`tools.${name} is not a tool`);
  if (isAiSdkEntry(tool)) return fromAiSdkEntry(name, readAiSdkEntry(name, tool));
  if (!isTool(tool)) return fromAiSdkTool(name, tool);
  if (tool.name === name) return tool;
  throw new TypeError(`tools.${name} is a tool named "${tool.name}"; the names must be the same`);
}

/** Returns whether a value is a tool. By shape, not by class: a tool may come from another copy of the package. */
export function isTool(value: unknown): value is Tool {
  if (!isObject(value) || typeof value.name !== 'string' || typeof value.execute !== 'function') return false;
  return isObject(value.input) && typeof value.input.validate === 'function' && isObject(value.input.jsonSchema);
}

const definitions = new WeakMap<Tool, LanguageModelV4FunctionTool>();

function definitionOf(tool: Tool): LanguageModelV4FunctionTool {
  const known = definitions.get(tool);
  if (known !== undefined) return known;
  const inputSchema = tool.input.jsonSchema as LanguageModelV4FunctionTool['inputSchema'];
  const definition = Object.freeze({
    type: 'function' as const,
    name: tool.name,
    description: tool.description,
    inputSchema,
  });
  definitions.set(tool, definition);
  return definition;
}
