import { resolve } from 'node:path';
import type { FanOutOptions } from '../../fan-out/index.ts';
import type { Model, Tool } from '../../index.ts';
import { toErrorData } from '../../values/error-data.ts';
import { isObject } from '../../values/json.ts';
import type { Arguments } from '../arguments.ts';
import { loadModule } from '../open/agent-module.ts';
import { modelNamed } from '../open/model-from-environment.ts';
import { Failure } from '../ui/failure.ts';
import { quoted } from '../ui/shell-words.ts';

/** The models to ask, and their options. */
export interface AskModels extends Pick<FanOutOptions, 'models' | 'tools' | 'prices' | 'judge' | 'instructions'> {}

/**
 * Returns the models of `pawl ask`: those that a module exports under these names, and `provider/model` for all others.
 * @param ids names of the models; empty = all models of the module
 * @throws {Failure} that says what is missing
 */
export async function modelsToAsk(args: Arguments, ids: readonly string[]): Promise<AskModels> {
  const exported = args.module === undefined ? {} : await loadModule(resolve(args.module), 'module');
  const offered = recordOf(exported.models, 'models', args.module);
  const names = ids.length > 0 ? ids : Object.keys(offered);
  if (names.length === 0) {
    throw new Failure(
      'name the models to ask: --models provider/model,provider/model (or export `models` from a --module)',
    );
  }
  const models: Record<string, Model> = {};
  for (const name of names) models[name] = (offered[name] as Model | undefined) ?? (await modelOf(name, args));
  const { tools, prices, instructions } = exported;
  if (tools !== undefined && !Array.isArray(tools)) throw mustBe('tools', 'an array of tools', args.module);
  if (instructions !== undefined && typeof instructions !== 'string')
    throw mustBe('instructions', 'a string', args.module);
  const known = (prices as FanOutOptions['prices']) ?? (await readPrices());
  const judge = await judgeFor(args, exported, offered);
  return {
    models,
    ...(tools ? { tools: tools as readonly Tool[] } : {}),
    ...(instructions === undefined ? {} : { instructions }),
    ...(judge ? { judge } : {}),
    ...(known ? { prices: known } : {}),
  };
}

/**
 * Parses the option `--models`: the ids of models, separated by commas.
 * @throws {Failure} for a list with an empty name, or the same name twice
 */
export function idsOf(list: string | undefined): readonly string[] {
  if (list === undefined) return [];
  const ids = list.split(',').map((id) => id.trim());
  if (ids.includes('')) throw new Failure(`--models ${JSON.stringify(list)} has an empty name in it`);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new Failure(`--models names ${twice} twice`);
  return ids;
}

async function judgeFor(
  args: Arguments,
  { judge }: Record<string, unknown>,
  offered: Readonly<Record<string, unknown>>,
): Promise<FanOutOptions['judge']> {
  if (args.judge === undefined) return judge as FanOutOptions['judge'];
  return (offered[args.judge] as Model | undefined) ?? loadNamed('--judge', args.judge, args);
}

/** The names of `--continue` come from the file: a name that is not provider/model came from a module. */
function modelOf(name: string, args: Arguments): Promise<Model> {
  if (!args.continue || name.includes('/')) return loadNamed('--models', name, args);
  const todo =
    args.module === undefined
      ? 'name the module it came from again, with --module'
      : `${args.module} does not export it; name the module it came from with --module`;
  throw new Failure(`${quoted(name)} is one of the models to continue: ${todo}`);
}

function loadNamed(setting: string, name: string, { module }: Arguments): Promise<Model> {
  return modelNamed(name, { setting, modulePath: module === undefined ? undefined : resolve(module) });
}

function recordOf(value: unknown, name: string, module: string | undefined): Readonly<Record<string, unknown>> {
  if (value === undefined) return {};
  if (isObject(value)) return value;
  throw mustBe(name, 'an object { name: model, … }', module);
}

function mustBe(name: string, what: string, module: string | undefined): Failure {
  return new Failure(`the export \`${name}\` of ${module} must be ${what}`);
}

/** The prices of models, if the list of prices is installed; otherwise no cost is shown. */
async function readPrices(): Promise<FanOutOptions['prices']> {
  try {
    const { genaiPrices } = await import('../../budget/genai-prices.ts');
    return await genaiPrices();
  } catch (error) {
    if (toErrorData(error).code === 'UNSUPPORTED') return undefined;
    throw error;
  }
}
