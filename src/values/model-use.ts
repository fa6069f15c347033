import { readProperty } from './error-data.ts';
import { hasTexts, isCount, isObject } from './json.ts';
import { addSpend, addUsage, isSpend, isUsage, noSpend, noUsage, type Spend, type Usage } from './usage.ts';

/** What one model of a run used. */
export interface ModelUse {
  /** `provider/modelId`; '' = not recorded. */
  readonly model: string;
  /** Turns that it completed. */
  readonly turns: number;
  readonly usage: Usage;
  /** The cost as a budget counted it; absent without a budget. */
  readonly spend?: Spend;
}

/**
 * A model of a run as records keep it. Only the last one works, and what it used is what the run used without the others: so a
 * record changes only when another model takes over, and most runs keep a name alone.
 */
export interface RunModel extends Partial<ModelUse> {
  readonly model: string;
}

/** What a run used, over all its models. */
export interface RunUse {
  readonly models?: readonly RunModel[];
  readonly iteration: number;
  readonly usage: Usage;
  readonly spend?: Spend;
}

/** Most models that a run keeps apart. Of more, the first ones are added up without a name. */
export const MAX_RUN_MODELS = 16;
/** Longest name of a model, in characters. */
export const MAX_MODEL_NAME_CHARS = 200;

/** Returns the name of a model as records keep it. It comes from a host's object, which may have any text, or none. */
export function modelName(model: object): string {
  const [provider, modelId] = ['provider', 'modelId'].map((key) => readProperty(model, key));
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  return `${text(provider)}/${text(modelId)}`.slice(0, MAX_MODEL_NAME_CHARS).toWellFormed();
}

/** Returns the models of a run from the moment on at which a model works for it. @param run before its turn */
export function withModel(run: RunUse, model: string): readonly RunModel[] {
  const { models = [] } = run;
  if (models.at(-1)?.model === model) return models;
  const others = modelUses(run).filter((use) => use.model !== model);
  return [...(others.length < MAX_RUN_MODELS ? others : withoutFirst(others)), { model }];
}

/** Adds up the first ones, so that there is room for one more. */
function withoutFirst(uses: readonly ModelUse[]): readonly ModelUse[] {
  const kept = uses.slice(2 - MAX_RUN_MODELS);
  return [sumOf('', uses.slice(0, uses.length - kept.length)), ...kept];
}

/**
 * Returns what each model of a run used: together what the run used. A run without a turn has none.
 * @example modelUses(record) // [{ model: 'acme/large', turns: 3, usage: { inputTokens: 900, … }, spend: { usd: 0.02, … } }]
 */
export function modelUses({ models = [], iteration, usage, spend }: RunUse): readonly ModelUse[] {
  const whole = { model: models.at(-1)?.model ?? '', turns: iteration, usage, ...(spend ? { spend } : {}) };
  const others = models.slice(0, -1).map((each) => ({ turns: 0, usage: noUsage, ...each }));
  const last = others.length === 0 ? whole : difference(whole, sumOf('', others));
  return isUsed(last) ? [...others, last] : others;
}

const isUsed = ({ turns, usage }: ModelUse) => turns > 0 || usage.inputTokens + usage.outputTokens > 0;

function sumOf(model: string, uses: readonly ModelUse[]): ModelUse {
  const spends = uses.flatMap(({ spend }) => spend ?? []);
  return {
    model,
    turns: uses.reduce((sum, { turns }) => sum + turns, 0),
    usage: uses.reduce((sum, { usage }) => addUsage(sum, usage), noUsage),
    ...(spends.length > 0 ? { spend: spends.reduce(addSpend, noSpend) } : {}),
  };
}

function difference(whole: ModelUse, part: ModelUse): ModelUse {
  const { tokens, usd, seconds } = part.spend ?? noSpend;
  const negative = Object.fromEntries(Object.entries(part.usage).map(([name, count]) => [name, -count]));
  return {
    ...whole,
    turns: whole.turns - part.turns,
    usage: addUsage(whole.usage, { ...noUsage, ...negative }),
    ...(whole.spend ? { spend: addSpend(whole.spend, { tokens: -tokens, usd: -usd, seconds: -seconds }) } : {}),
  };
}

/** Returns whether a stored value is the models of a run. */
export function isRunModels(value: unknown): boolean {
  return Array.isArray(value) && value.length <= MAX_RUN_MODELS && value.every(isRunModel);
}

function isRunModel(value: unknown): boolean {
  if (!isObject(value) || !hasTexts(value, ['model'])) return false;
  const { turns, usage, spend } = value as { turns?: unknown; usage?: unknown; spend?: unknown };
  return (
    (turns === undefined || isCount(turns)) &&
    (usage === undefined || isUsage(usage)) &&
    (spend === undefined || isSpend(spend))
  );
}
