import type { Answer } from '../../../run/command.ts';
import { approvalDigest, decisionIdOf } from '../../../run/identity.ts';
import { callOf } from '../../../run/open-step.ts';
import { needsName, type Person, type Wait } from '../../../run/waits/wait.ts';
import type { GivenAnswer, WaitAnswer } from '../../../run/waits/wait-answer.ts';
import { waitOf } from '../../../run/waits/wait-rules.ts';
import { type Approval, toolHashOf } from '../../../tool/approval.ts';
import type { Tool } from '../../../tool/define-tool.ts';
import { readSchema } from '../../../tool/schema.ts';
import { withDeadline } from '../../../values/deadline.ts';
import { sha256 } from '../../../values/digest.ts';
import { toErrorData } from '../../../values/error-data.ts';
import { AnswerRedactedError, AnswerRefusedError } from '../../../values/errors.ts';
import { canonicalJson, frozenJson, isObject, type JsonValue, prototypeKeyIn } from '../../../values/json.ts';
import type { ExecutorServices } from '../active-run.ts';
import { recordedText } from '../record/stored-run.ts';
import { approvalAgain, approvalWords, type Candidate, type JudgedRun, verdictOf } from './judge-call.ts';

type Approving = Extract<Wait, { kind: 'approval' }>;

/**
 * Checks an answer for the run that owns the wait: who may decide, whether the value fits, and whether redaction would change
 * it. What the record alone decides (the wait is gone, another answer came first) is left to the machine.
 * @throws {ANSWER_REFUSED} @throws {ANSWER_REDACTED}
 */
export async function admitAnswer(run: JudgedRun, given: GivenAnswer): Promise<WaitAnswer> {
  const { waitId, at, by, command, answer } = given;
  const facts = {
    waitId,
    at,
    ...(by ? { by } : {}),
    ...(command === undefined ? {} : { command }),
    ...decisionOf(given),
  };
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
      if (wait?.kind === 'question') await checkAnswerer(run, wait, { by, value: answer.value ?? null });
      return { ...facts, how: answer.how, value: frozenJson(answer.value ?? null, 'value') };
    case 'deny':
      if (wait?.kind === 'approval')
        await checkPerson(run, wait, { by, input: wait.input ?? candidateOf(run, wait)?.call.input });
      return { ...facts, how: 'deny', ...(answer.reason ? { reason: recordedText(run.services, answer.reason) } : {}) };
    case 'approve':
      return admitApproval(run, wait, { facts, answer, by });
  }
}

function decisionOf({ waitId, answer, by }: GivenAnswer): { readonly decision?: string } {
  const { how } = answer;
  if (how === 'expire' || how === 'ended') return {};
  if (how === 'signal') return { decision: sha256(answer.signal.id) };
  return { decision: decisionIdOf(waitId, answer, by?.id) };
}

interface Approved {
  readonly facts: Pick<WaitAnswer, 'waitId' | 'at' | 'by' | 'command' | 'decision'>;
  readonly answer: Answer;
  readonly by: Person | undefined;
}

async function admitApproval(run: JudgedRun, wait: Wait | undefined, given: Approved): Promise<WaitAnswer> {
  const { digest, note, input } = given.answer;
  const approved: WaitAnswer = {
    ...given.facts,
    how: 'approve',
    ...(digest === undefined ? {} : { digest }),
    ...(note ? { note: recordedText(run.services, note) } : {}),
    ...(input === undefined ? {} : { input: frozenJson(input, 'input') }),
  };
  if (wait?.kind !== 'approval') return approved;
  const candidate = candidateOf(run, wait);
  if (!candidate) return approved;
  const { tool } = candidate;
  // The rules of today ask again, and decide who may answer.
  if (!tool || hasChanged(candidate, tool, wait))
    return { ...approved, ...(await approvalAgain(run, candidate, wait)) };
  const checked = await checkInput(run, wait, { ...candidate, tool, edit: input });
  await checkPerson(run, wait, { by: given.by, input: checked.value });
  if (input === undefined) return approved;
  const words = await approvalWords(run, { ...candidate, tool }, { input: checked.value });
  return { ...approved, words };
}

/** Whether the call, its tool or its agent is another one than the person was asked about. */
function hasChanged({ call, progress }: Candidate, tool: Tool, { input = call.input, ...wait }: Approving): boolean {
  if (approvalDigest(call.name, input, progress.definition.version) !== wait.digest) return true;
  // A record of an older version does not have it.
  return wait.toolHash !== undefined && wait.toolHash !== toolHashOf(tool);
}

function refuse(why: string): never {
  throw new AnswerRefusedError(why);
}

/** A value that redaction would change cannot be recorded, and the run would continue with another one. */
function checkRecordable(run: JudgedRun, what: string, value: JsonValue): void {
  const recorded = run.redaction?.records.json(value) ?? value;
  if (recorded === value || canonicalJson(recorded) === canonicalJson(value)) return;
  throw new AnswerRedactedError(`${what} holds a text that redaction removes from records; give it without that text`);
}

async function checkValue(run: JudgedRun, wait: Wait, value: JsonValue): Promise<void> {
  if (wait.kind !== 'question' && wait.kind !== 'event') return;
  checkRecordable(run, 'the answer', value);
  await checkFit(run.services, wait, value);
}

/** Checks that a value is one of the options of a question, and fits the schema of a wait. @throws {ANSWER_REFUSED} */
export async function checkFit(services: ExecutorServices, wait: Wait, value: JsonValue): Promise<void> {
  if (wait.kind !== 'question' && wait.kind !== 'event') return;
  const { options } = wait.kind === 'question' ? wait : {};
  if (options && !options.some((option) => canonicalJson(option) === canonicalJson(value)))
    refuse(`the answer must be one of the options: ${JSON.stringify(options).slice(0, 500)}`);
  if (!wait.schema) return;
  const key = prototypeKeyIn(value);
  if (key !== undefined) refuse(`the answer holds the key ${key}, which is not allowed`);
  const { schema } = wait;
  const fit = await askBounded(services, 'the schema', () => readSchema(schema, 'answer').validate(value));
  if (!fit.ok) refuse(`the answer does not fit: ${fit.message}`);
}

/** Returns why a changed input is refused whose tool does not allow one. */
export function notEditable({ tool = 'this call' }: Wait): string {
  return `the input of ${tool} may not be changed: its tool has no \`approval: { editable: true }\``;
}

interface Edited extends Candidate {
  readonly tool: Tool;
  readonly edit: JsonValue | undefined;
}

/** Checks the input that would run. @returns the input as the tool would get it, or as it is: its call says why it does not fit */
async function checkInput(
  run: JudgedRun,
  wait: Approving,
  { edit, ...candidate }: Edited,
): Promise<{ readonly value: unknown }> {
  const { tool } = candidate;
  const input = edit ?? wait.input ?? candidate.call.input;
  if (edit !== undefined) {
    if (!wait.editable) refuse(notEditable(wait));
    checkRecordable(run, 'the changed input', edit);
    const key = prototypeKeyIn(edit);
    if (key !== undefined) refuse(`the changed input holds the key ${key}, which no tool takes`);
    if (typeof edit === 'string' && tool.input.jsonSchema.type !== 'string') refuse('the changed input is not JSON');
  }
  const fit = await askBounded(run.services, 'the input schema', () => tool.input.validate(input));
  if (edit === undefined) return fit.ok ? fit : { value: input };
  if (!fit.ok) return refuse(`the changed input does not fit: ${fit.message}`);
  // The rules may deny a changed input; they are not asked whether a person must approve: one does.
  const verdict = await verdictOf(run, { ...candidate, call: { ...candidate.call, input }, input: fit.value });
  if (isObject(verdict) && 'deny' in verdict) refuse(`the changed input is denied: ${verdict.deny}`);
  return fit;
}

/** Whether this person may decide; where several must agree, each needs a name. */
async function checkPerson(
  run: JudgedRun,
  wait: Approving,
  { by, input }: { readonly by: Person | undefined; readonly input: unknown },
): Promise<void> {
  const approvers = candidateOf(run, wait)?.tool?.approval?.approvers as Approval['approvers'];
  if (!by || by.id === '') {
    if (approvers || wait.quorum > 1) refuse('this decision needs a person: give `by` with an id');
    return;
  }
  if (!approvers) return;
  const answer: unknown = await askBounded(run.services, 'approvers', async () => approvers({ wait, by, input }));
  if (answer !== true) refuse(refusalIn(answer, `${by.id} may not decide about this call`));
}

/** Whether this person may answer; where several must agree, each needs a name. */
async function checkAnswerer(
  run: JudgedRun,
  wait: Extract<Wait, { kind: 'question' }>,
  { by, value }: { readonly by: Person | undefined; readonly value: JsonValue },
): Promise<void> {
  const found = candidateOf(run, wait);
  const answerers = found?.tool?.answerers;
  if (!by || by.id === '') {
    if (answerers || needsName(wait)) refuse('this decision needs a person: give `by` with an id');
    return;
  }
  if (!answerers) return;
  const check = { wait, by, input: found.call.input, value };
  const answer: unknown = await askBounded(run.services, 'approvers', async () => answerers(check));
  if (answer !== true) refuse(refusalIn(answer, `${by.id} may not answer this question`));
}

function refusalIn(answer: unknown, otherwise: string): string {
  return isObject(answer) && typeof answer.refused === 'string' ? answer.refused : otherwise;
}

/**
 * Returns whether an answer was refused because a check of the host failed. Where the answer is sent this decides nothing: the process
 * that has the run checks it again.
 */
export function isUnchecked(error: unknown): boolean {
  return error instanceof AnswerRefusedError && error.cause !== undefined;
}

/** A check of the host that throws or does not answer refuses. */
async function askBounded<T>({ config }: ExecutorServices, what: string, work: () => T | PromiseLike<T>): Promise<T> {
  const { clock, defaults } = config;
  try {
    return await withDeadline(Promise.resolve(work()), { ms: defaults.portMs, clock, what });
  } catch (error) {
    throw new AnswerRefusedError(`${what} could not check the answer: ${toErrorData(error).message}`, { cause: error });
  }
}

/** The call that a wait asks about, and its tool. */
export function candidateOf(run: JudgedRun, { callId }: Wait): Candidate | undefined {
  const { progress, resources } = run;
  const call = progress?.openStep && callId !== undefined ? callOf(progress.openStep, callId) : undefined;
  if (!progress || !call) return undefined;
  const phase = progress.openPhase?.index ?? 0;
  return { progress, call, tool: resources.loops[phase]?.toolbox.tools.get(call.name), phase };
}
