import { pathToFileURL } from 'node:url';
import type { Model } from '../index.ts';
import { readProperty, toErrorData } from '../run/error-data.ts';
import { Failure } from './failure.ts';
import { importFrom } from './module-resolution.ts';

/** Where providers look for their keys; of others we know nothing, and they complain themselves. */
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
 * The model that PAWL_MODEL names, by way of the AI SDK; undefined when it is not set.
 * @param modulePath the agent module: the provider's package is looked for from there first
 * @throws {Failure} that says what to install or to set
 */
export async function modelFromEnvironment(modulePath: string): Promise<Model | undefined> {
  const setting = process.env.PAWL_MODEL;
  if (!setting) return undefined;
  const [, name, id] = /^([a-z0-9-]+)\/(.+)$/.exec(setting) ?? [];
  if (name === undefined || id === undefined) {
    throw new Failure(`PAWL_MODEL is ${JSON.stringify(setting)}; write provider/model, for example openai/gpt-5`);
  }
  const provider = await loadProvider(name, modulePath);
  const key = keyNames[name];
  if (key !== undefined && !process.env[key]) throw new Failure(`PAWL_MODEL=${setting} needs a key; set ${key}`);
  return provider.languageModel(id);
}

async function loadProvider(name: string, modulePath: string): Promise<Provider> {
  const specifier = `@ai-sdk/${name}`;
  const parents = [modulePath, `${process.cwd()}/package.json`].map((path) => pathToFileURL(path).href);
  const exported = await importProvider(specifier, parents);
  const isProvider = (value: unknown): value is Provider =>
    typeof value === 'function' && typeof readProperty(value, 'languageModel') === 'function';
  const found = [exported[camelCase(name)], ...Object.values(exported)].find(isProvider);
  if (found) return found;
  throw new Failure(
    `${specifier} has no ready-made provider; export \`models\` from the agent module instead of using PAWL_MODEL`,
  );
}

async function importProvider(specifier: string, parents: readonly string[]): Promise<Record<string, unknown>> {
  try {
    return await importFrom({ specifier, parents });
  } catch (error) {
    const { code, message } = toErrorData(error);
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' && message.includes(`'${specifier}'`);
    const problem = isMissing
      ? `PAWL_MODEL needs the package ${specifier}, which is not installed; run \`npm install ${specifier}\``
      : `the package ${specifier} could not be loaded: ${message}`;
    throw new Failure(problem, { cause: error });
  }
}

function camelCase(name: string): string {
  return name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
