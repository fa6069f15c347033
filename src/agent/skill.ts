import type { ModelChoice } from '../model/port.ts';
import { checkModelChoice } from '../model/tier.ts';
import { checkSettings, type ModelSettings, settingNames } from '../run/model-settings.ts';
import type { InputOf } from '../tool/define-tool.ts';
import { readSchema, type ToolInput } from '../tool/schema.ts';
import type { JsonObject } from '../values/json.ts';
import { checkKeys, earlierNames, isWholeBound, type KnownKeys } from '../values/known-options.ts';

/** The argument of `defineSkill`. */
export interface SkillDefinition<Schema> {
  /**
   * 1 to 57 of the characters A-Z, a-z, 0-9, `_` and `-`: the model sees it as `skill__<name>`.
   * @example name: 'summarise'
   */
  readonly name: string;
  /**
   * For the model: what the skill does and when to use it.
   * @example description: 'Summarises a text.'
   */
  readonly description: string;
  /**
   * The input; the same kinds of schema as a tool's input.
   * @example input: z.object({ text: z.string() })
   */
  readonly input: Schema;
  /**
   * The prompt, a template: `{{.field}}` is a field of the input. A value that is not text appears as JSON.
   * @example instructions: 'Summarise: {{.text}}'
   */
  readonly instructions: string;
  /**
   * As in an agent.
   * @default that of the agent that uses it
   * @example model: 'fast'
   */
  readonly model?: ModelChoice;
  /**
   * One plain model call, or with `false` a loop with the tools that it names.
   * @default true
   */
  readonly bare?: boolean;
  /**
   * Names of the executor's tools, for a skill that is not bare.
   * @default none
   * @example tools: ['search']
   */
  readonly tools?: readonly string[];
  /**
   * Most steps of a skill that is not bare.
   * @default the executor's `defaults.maxSteps`
   * @example maxSteps: 5
   */
  readonly maxSteps?: number;
  /**
   * Settings of its model calls; the settings of the calling agent do not apply.
   * @default none
   * @example settings: { temperature: 0 }
   */
  readonly settings?: ModelSettings;
}

/** A prompt with inputs, which an agent can use like a tool. */
export interface Skill<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input: ToolInput;
  readonly instructions: string;
  readonly model?: ModelChoice;
  readonly bare: boolean;
  readonly tools: readonly string[];
  readonly maxSteps?: number;
  readonly settings?: ModelSettings;
  /** For the types only. */
  readonly _input?: Input;
}

const skillKeys: KnownKeys<SkillDefinition<unknown>> = {
  name: true,
  description: true,
  input: true,
  instructions: true,
  model: true,
  bare: true,
  tools: true,
  maxSteps: true,
  settings: true,
};

/**
 * Defines a skill.
 * @throws {TypeError} for a bad name, an unknown key, tools of a bare skill, or a schema without a JSON Schema
 * @example
 * const summarise = defineSkill({
 *   name: 'summarise',
 *   description: 'Summarises a text.',
 *   input: z.object({ text: z.string(), words: z.number() }),
 *   instructions: 'Summarise in at most {{.words}} words:\n{{.text}}',
 * })
 */
export function defineSkill<const Schema>(definition: SkillDefinition<Schema>): Skill<InputOf<Schema>> {
  const { name, description, input, instructions, bare = true, tools = [], ...rest } = definition;
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,57}$/.test(name))
    throw new TypeError(`a skill's name is 1 to 57 of the characters A-Z a-z 0-9 _ -, not ${JSON.stringify(name)}`);
  checkKeys(definition, skillKeys, { of: `skill "${name}"`, elsewhere: settingNames(), foreign: earlierNames });
  checkModelChoice(`skill "${name}": model`, definition.model);
  if (typeof description !== 'string') throw new TypeError(`skill "${name}": description must be a string`);
  if (typeof instructions !== 'string') throw new TypeError(`skill "${name}": instructions must be a string`);
  const { maxSteps } = definition;
  if (maxSteps !== undefined && !isWholeBound(maxSteps))
    throw new TypeError(`skill "${name}": maxSteps must be a whole number above 0, not ${String(maxSteps)}`);
  if (bare && tools.length > 0) throw new TypeError(`skill "${name}" is bare: it has no tools; set bare: false`);
  const { settings, ...others } = rest;
  const of = `skill "${name}"`;
  return Object.freeze({
    ...others,
    name,
    description,
    instructions,
    bare,
    tools,
    input: readSchema(input, name),
    ...(settings && { settings: checkSettings(settings, { of, at: 'settings' }) }),
  });
}

/** Returns the values of a skill's input, as its template uses them. */
export function textsOfSkill(input: JsonObject): { readonly [name: string]: string } {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}
