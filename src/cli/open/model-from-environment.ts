import { pathToFileURL } from 'node:url';
import type { Model } from '../../index.ts';
import { readProperty, toErrorData } from '../../values/error-data.ts';
import { Failure } from '../ui/failure.ts';
import { importFrom } from './module-resolution.ts';

/** The variables of providers' keys; other providers report a missing key themselves. */
const keyNames: Readonly<Record<string, string>> = {
  anthropic: 'ANTHROPIC_API_KEY',
  cohere: 'COHERE_API_KEY',
  deepseek: 'DEEPSEEK_API_KEY',
  google: 'GOOGLE_GENERATIVE_AI_API_KEY',
  groq: 'GROQ_API_KEY',
  mistral: 'MISTRAL_API_KEY',
  openai: 'OPENAI_API_KEY',
  xai: 'XAI_API_KEY',
};

interface Provider {
  languageModel(id: string): Model;
}

/**
 * Returns the model that the variable PAWL_MODEL names, by the AI SDK; undefined if it is not set.
 * @param modulePath the agent module: the provider's package is resolved from there first
 * @throws {Failure} that says what to install or to set
 */
export async function modelFromEnvironment(modulePath: string): Promise<Model | undefined> {
  const setting = process.env.PAWL_MODEL;
  return setting ? modelNamed(setting, { setting: 'PAWL_MODEL', modulePath }) : undefined;
}

/** The setting that names a model, for errors, and the module from which its provider's package is resolved first. */
interface ModelNaming {
  readonly setting: string;
  readonly modulePath?: string | undefined;
}

/**
 * Imports the AI SDK provider of a name `provider/model`, and returns the model.
 * @throws {Failure} that says what to install or to set
 */
export async function modelNamed(fullName: string, naming: ModelNaming): Promise<Model> {
  const { setting } = naming;
  const [, name, id] = /^([a-z0-9-]+)\/(.+)$/.exec(fullName) ?? [];
  if (name === undefined || id === undefined) {
    throw new Failure(`${setting} is ${JSON.stringify(fullName)}; write provider/model, for example openai/gpt-5`);
  }
  const provider = await loadProvider(name, naming);
  const key = keyNames[name];
  if (key !== undefined && !process.env[key]) throw new Failure(`${setting}=${fullName} needs a key; set ${key}`);
  return provider.languageModel(id);
}

async function loadProvider(name: string, naming: ModelNaming): Promise<Provider> {
  const specifier = `@ai-sdk/${name}`;
  const { setting, modulePath } = naming;
  const places = [...(modulePath === undefined ? [] : [modulePath]), `${process.cwd()}/package.json`];
  const parents = places.map((path) => pathToFileURL(path).href);
  const exported = await importProvider(specifier, parents, setting);
  const isProvider = (value: unknown): value is Provider =>
    typeof value === 'function' && typeof readProperty(value, 'languageModel') === 'function';
  const found = [exported[camelCase(name)], ...Object.values(exported)].find(isProvider);
  if (found) return found;
  throw new Failure(
    `${specifier} exports no default provider; export \`models\` from a module instead of using ${setting}`,
  );
}

async function importProvider(
  specifier: string,
  parents: readonly string[],
  setting: string,
): Promise<Record<string, unknown>> {
  try {
    return await importFrom({ specifier, parents });
  } catch (error) {
    const { code, message } = toErrorData(error);
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' && message.includes(`'${specifier}'`);
    const problem = isMissing
      ? `${setting} needs the package ${specifier}, which is not installed; run \`npm install ${specifier}\``
      : `the package ${specifier} could not be loaded: ${message}`;
    throw new Failure(problem, { cause: error });
  }
}

function camelCase(name: string): string {
  return name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
