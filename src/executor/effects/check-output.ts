import type { OutputCheck } from '../../../machines/context.ts';
import { isWrapped, unwrapped } from '../../model/answer-format.ts';
import { lastTextOf } from '../../run/outcome.ts';
import type { Progress } from '../../run/progress.ts';
import type { ToolInput } from '../../tool/schema.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { frozenJson, prototypeKeyIn } from '../../values/json.ts';
import { withoutFence } from '../../values/texts/model-text.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';

/**
 * Checks the answer of a run or phase against the agent's output schema. Never rejects: an error of the schema is a problem
 * of the answer.
 */
export function checkOutput(
  { progress }: { progress: Progress },
  { services, agent }: ActiveRun,
): Promise<OutputCheck> {
  return parseAnswer(services, lastTextOf(progress), agent.outputSchema);
}

/** Parses an answer as JSON and checks it against a schema. Never rejects. */
export async function parseAnswer(
  { config }: ExecutorServices,
  answer: string,
  schema: ToolInput | undefined,
): Promise<OutputCheck> {
  const { clock, defaults } = config;
  try {
    return await withDeadline(check(answer, schema), { ms: defaults.portMs, clock, what: 'the output schema' });
  } catch (error) {
    return { problem: toErrorData(error).message };
  }
}

async function check(answer: string, schema: ToolInput | undefined): Promise<OutputCheck> {
  const text = withoutFence(answer);
  if (!schema) return { data: text };
  const value = parsed(text, schema);
  const inner = isWrapped(schema.jsonSchema) ? unwrapped(value) : undefined;
  const first = inner && (await schema.validate(inner.value));
  const validation = first?.ok ? first : await schema.validate(value);
  return validation.ok ? { data: frozenJson(validation.value, 'output') } : { problem: validation.message };
}

/** A schema of a string takes an answer that is no JSON unchanged. */
function parsed(text: string, { jsonSchema }: ToolInput): unknown {
  if (jsonSchema.type === 'string' && !isWrapper(text)) return text;
  const value = fromJson(text);
  const key = prototypeKeyIn(value);
  if (key !== undefined) throw new TypeError(`it holds the key ${key}; leave it out`);
  return value;
}

function isWrapper(text: string): boolean {
  try {
    return unwrapped(JSON.parse(text)) !== undefined;
  } catch {
    return false;
  }
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new TypeError('it is not JSON');
  }
}
