import type { OutputCheck } from '../../../machines/context.ts';
import { lastTextOf } from '../../run/outcome.ts';
import type { Progress } from '../../run/progress.ts';
import type { ToolInput } from '../../tool/schema.ts';
import { withDeadline } from '../../values/deadline.ts';
import { toErrorData } from '../../values/error-data.ts';
import { withoutFence } from '../../values/fence.ts';
import { frozenJson, prototypeKeyIn } from '../../values/json.ts';
import type { ActiveRun, ExecutorServices } from '../run/active-run.ts';

/** Holds an answer against the agent's output schema. It never rejects: a schema that throws has found a problem. */
export function checkOutput(
  { progress }: { progress: Progress },
  { services, agent }: ActiveRun,
): Promise<OutputCheck> {
  return checkedOutput(services, lastTextOf(progress), agent.outputSchema);
}

/** Holds an answer against a schema. It never rejects. */
export async function checkedOutput(
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
  const validation = await schema?.validate(parsed(text, schema));
  if (!validation) return { data: text };
  return validation.ok ? { data: frozenJson(validation.value, 'output') } : { problem: validation.message };
}

/** A schema of a text takes the answer as it is. */
function parsed(text: string, { jsonSchema }: ToolInput): unknown {
  if (jsonSchema.type === 'string') return text;
  const value = fromJson(text);
  const key = prototypeKeyIn(value);
  if (key !== undefined) throw new TypeError(`it holds the key ${key}; leave it out`);
  return value;
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new TypeError('it is not JSON');
  }
}
