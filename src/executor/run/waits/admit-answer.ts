import { idempotencyKeyOf } from '../../../run/identity.ts';
import { callOf, type OpenCall } from '../../../run/open-step.ts';
import type { Person, Wait } from '../../../run/waits/wait.ts';
import { type GivenAnswer, type WaitAnswer, waitOf } from '../../../run/waits/wait-rules.ts';
import { type Approval, verdictFrom } from '../../../tool/approval.ts';
import type { Tool } from '../../../tool/define-tool.ts';
import { readSchema } from '../../../tool/schema.ts';
import { withDeadline } from '../../../values/deadline.ts';
import { toErrorData } from '../../../values/error-data.ts';
import { AnswerRedactedError, AnswerRefusedError } from '../../../values/errors.ts';
import { canonicalJson, frozenJson, isObject, type JsonValue, prototypeKeyIn } from '../../../values/json.ts';
import { noLabels } from '../../host/middleware.ts';
import type { ActiveRun } from '../active-run.ts';
import { recordedText } from '../stored-run.ts';

type Approving = Extract<Wait, { kind: 'approval' }>;

/**
 * Checks an answer for the run that owns the wait: who may decide, whether the value fits, and whether redaction would change
 * it. What the record alone decides (the wait is gone, another answer came first) is left to the machine.
 * @throws {AnswerRefusedError} @throws {AnswerRedactedError}
 */
export async function admit(run: ActiveRun, given: GivenAnswer): Promise<WaitAnswer> {
  const { waitId, at, by, command, answer } = given;
  const facts = { waitId, at, ...(by ? { by } : {}), ...(command === undefined ? {} : { command }) };
  const wait = run.progress && waitOf(run.progress, waitId);
  switch (answer.how) {
    case 'expire':
    case 'wake':
      return { ...facts, how: answer.how };
    case 'ended':
      return { ...facts, how: 'ended', output: answer.output };
    case 'signal':
    case 'answer':
      if (wait) await checkValue(run, wait, answer.value ?? null);
      return { ...facts, how: answer.how, value: frozenJson(answer.value ?? null, 'value') };
    case 'deny':
      if (wait?.kind === 'approval') await checkPerson(run, wait, { by });
      return { ...facts, how: 'deny', ...(answer.reason ? { reason: recordedText(run.services, answer.reason) } : {}) };
    case 'approve': {
      const { digest, note, input } = answer;
      if (wait?.kind === 'approval') await checkApproval(run, wait, { by, edit: input });
      return {
        ...facts,
        how: 'approve',
        ...(digest === undefined ? {} : { digest }),
        ...(note ? { note: recordedText(run.services, note) } : {}),
        ...(input === undefined ? {} : { input: frozenJson(input, 'input') }),
      };
    }
  }
}

function refuse(why: string): never {
  throw new AnswerRefusedError(why);
}

/** A value that redaction would change cannot be recorded, and the run would continue with another one. */
function checkRecordable(run: ActiveRun, what: string, value: JsonValue): void {
  const recorded = run.redaction?.records.json(value) ?? value;
  if (recorded === value || canonicalJson(recorded) === canonicalJson(value)) return;
  throw new AnswerRedactedError(`${what} holds a text that redaction removes from records; give it without that text`);
}

async function checkValue(run: ActiveRun, wait: Wait, value: JsonValue): Promise<void> {
  if (wait.kind !== 'question' && wait.kind !== 'event') return;
  checkRecordable(run, 'the answer', value);
  const { options } = wait.kind === 'question' ? wait : {};
  if (options && !options.some((option) => canonicalJson(option) === canonicalJson(value)))
    refuse(`the answer must be one of the options: ${JSON.stringify(options).slice(0, 500)}`);
  if (!wait.schema) return;
  const key = prototypeKeyIn(value);
  if (key !== undefined) refuse(`the answer holds the key ${key}, which is not allowed`);
  const { schema } = wait;
  const fit = await bounded(run, 'the schema', () => readSchema(schema, 'answer').validate(value));
  if (!fit.ok) refuse(`the answer does not fit: ${fit.message}`);
}

/** A decision about a call: who decides, and the input that the person wants instead. */
interface Decision {
  readonly by: Person | undefined;
  readonly edit?: JsonValue | undefined;
}

async function checkApproval(run: ActiveRun, wait: Approving, { by, edit }: Decision): Promise<void> {
  const call = callOfWait(run, wait);
  const tool = call && toolOf(run, call.name);
  if (!call || !tool) return refuse(`tool ${wait.tool ?? ''} of this call is not there any more`);
  if (edit !== undefined) {
    if (!wait.editable) refuse(`the input of ${tool.name} may not be changed`);
    checkRecordable(run, 'the changed input', edit);
    const key = prototypeKeyIn(edit);
    if (key !== undefined) refuse(`the changed input holds the key ${key}, which no tool takes`);
    const fit = await bounded(run, 'the input schema', () => tool.input.validate(edit));
    if (!fit.ok) refuse(`the changed input does not fit: ${fit.message}`);
    await checkPolicy(run, { ...call, input: edit });
  }
  await checkPerson(run, wait, { by, edit });
}

/** The policy may deny a changed input; it is not asked whether a person must approve: one does. */
async function checkPolicy(run: ActiveRun, call: OpenCall): Promise<void> {
  const { approvals } = run.services.config;
  if (!approvals || !run.progress) return;
  const { callId, name, input, effect } = call;
  const judged = Object.freeze({
    ...{ runId: run.runId, step: run.progress.iteration + 1, agentId: run.agent.id, tier: '' },
    ...{ key: idempotencyKeyOf(run.runId, callId), labels: run.progress.labels ?? noLabels },
    ...{ callId, name, input, effect, attempt: 1, verdict: 'ask' as const },
  });
  const verdict = await bounded(run, 'approvals', async () => verdictFrom((await approvals(judged)) ?? 'ask'));
  if (isObject(verdict) && 'deny' in verdict) refuse(`the changed input is denied: ${verdict.deny}`);
}

/** Whether this person may decide; where several must agree, each needs a name. */
async function checkPerson(run: ActiveRun, wait: Approving, { by, edit }: Decision): Promise<void> {
  const call = callOfWait(run, wait);
  const approvers = (call && toolOf(run, call.name))?.approval?.approvers as Approval['approvers'];
  if (!by || by.id === '') {
    if (approvers || wait.quorum > 1) refuse('this decision needs a person: give `by` with an id');
    return;
  }
  if (!approvers) return;
  const input = edit ?? wait.input ?? call?.input;
  const answer: unknown = await bounded(run, 'approvers', async () => approvers({ wait, by, input }));
  if (answer === true) return;
  refuse(
    isObject(answer) && typeof answer.refused === 'string' ? answer.refused : `${by.id} may not decide about this call`,
  );
}

/** A check of the host that throws or does not answer refuses. */
async function bounded<T>(run: ActiveRun, what: string, work: () => T | PromiseLike<T>): Promise<T> {
  const { clock, defaults } = run.services.config;
  try {
    return await withDeadline(Promise.resolve(work()), { ms: defaults.portMs, clock, what });
  } catch (error) {
    throw new AnswerRefusedError(`${what} could not check the answer: ${toErrorData(error).message}`, { cause: error });
  }
}

function callOfWait({ progress }: ActiveRun, { callId }: Wait): OpenCall | undefined {
  return progress?.openStep && callId !== undefined ? callOf(progress.openStep, callId) : undefined;
}

function toolOf({ resources, progress }: ActiveRun, name: string): Tool | undefined {
  return resources.loops[progress?.openPhase?.index ?? 0]?.toolbox.tools.get(name);
}
