import { RequestError } from '../http/problem.ts';
import type { AnswerVote, JsonObject, JsonValue, ListedWait, Person, RunControl, Vote, Wait } from '../index.ts';
import { hasCode } from '../values/error-data.ts';
import { isObject } from '../values/json.ts';
import type { ResumeEntry } from './input.ts';
import type { AgUiEventOf } from './protocol.ts';

type InterruptOutcome = Extract<NonNullable<AgUiEventOf<'RUN_FINISHED'>['outcome']>, { readonly type: 'interrupt' }>;
/** What a run asks of a person, as the protocol has it. */
export type Interrupt = InterruptOutcome['interrupts'][number];

/** An open wait that a person ends: an approval, or a question. */
export type PersonWait = Extract<ListedWait, { readonly kind: 'approval' | 'question' }>;

/** Returns whether a person ends a wait with an answer. The others end by themselves, or by a signal. */
export function isInterrupt<Each extends Pick<Wait, 'kind'>>(
  wait: Each,
): wait is Extract<Each, { readonly kind: 'approval' | 'question' }> {
  return wait.kind === 'approval' || wait.kind === 'question';
}

interface InterruptFacts {
  /** The call that waits, as the reader knows it. */
  readonly toolCallId?: string | undefined;
  /** The code of the answer that the run has refused. */
  readonly refused?: string | undefined;
}

/** Makes the interrupt of an open wait. */
export function interruptOf(wait: PersonWait, { toolCallId, refused }: InterruptFacts = {}): Interrupt {
  const { id, dueAt, tool } = wait;
  const call = toolCallId === undefined ? {} : { toolCallId };
  const expires = dueAt === undefined ? {} : { expiresAt: new Date(dueAt).toISOString() };
  if (wait.kind === 'question') {
    const { question: message, options, schema, quorum = 1, votes = [] } = wait;
    const expected = schema ?? (options ? { enum: options } : undefined);
    const agreed = quorum > 1 ? { quorum, votes: votes.length, given: givenBy(votes) } : {};
    const pawl = { ...agreed, ...defined({ refused }) };
    return {
      ...{ id, reason: 'input_required', message, ...call, ...expires },
      ...(expected ? { responseSchema: expected as JsonObject } : {}),
      ...(Object.keys(pawl).length === 0 ? {} : { metadata: { pawl } }),
    };
  }
  const { prompt, detail, digest, quorum, votes, editable, input, modelInput, changedBy } = wait;
  const changed = { modelInput, changedBy: changedBy && { ...changedBy } };
  const given = quorum > 1 ? { given: givenBy(votes) } : {};
  const pawl = {
    tool,
    digest,
    quorum,
    votes: votes.length,
    ...given,
    ...defined({ input, detail, ...changed, refused }),
  };
  return {
    ...{ id, reason: 'tool_call', message: prompt ?? `May ${tool ?? 'this tool'} run?`, ...call, ...expires },
    responseSchema: editable ? editableSchema : approvalSchema,
    metadata: { pawl },
  };
}

/** Who has given which vote, where several persons must agree. */
function givenBy(votes: readonly (Vote | AnswerVote)[]): readonly JsonObject[] {
  return votes.map((vote) => ({ by: { ...vote.by }, at: vote.at, ...('value' in vote ? { value: vote.value } : {}) }));
}

function defined(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject;
}

const note = {
  type: 'string',
  description: 'Of a denial: the reason, which the model reads. Of an approval: for those who read the decision later.',
};
const approvalSchema: JsonObject = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, note },
  required: ['approved'],
};
/** The field `editedArgs` tells a reader that it may offer a form for the arguments. */
const editableSchema: JsonObject = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    editedArgs: { type: 'object', description: 'Replaces all arguments of the call.' },
    note,
  },
  required: ['approved'],
};

/** A decision about one open wait. */
export interface InterruptDecision {
  readonly wait: PersonWait;
  readonly entry: ResumeEntry;
}

/**
 * Finds the open wait of each answer. Each open wait needs one answer, and each answer an open wait; one whose wait has ended
 * meanwhile is `late`, if the record still knows it.
 * @throws {RequestError} RESUME_MISMATCH
 */
export function matchResume(
  entries: readonly ResumeEntry[],
  open: readonly PersonWait[],
): { readonly decisions: readonly InterruptDecision[]; readonly late: readonly ResumeEntry[] } {
  const waits = new Map(open.map((wait) => [wait.id, wait]));
  const named = new Set<string>();
  const decisions: InterruptDecision[] = [];
  const late: ResumeEntry[] = [];
  for (const entry of entries) {
    const { interruptId } = entry;
    if (named.has(interruptId)) throw mismatch('an interrupt is answered twice');
    named.add(interruptId);
    const wait = waits.get(interruptId);
    if (wait) decisions.push({ wait, entry });
    else late.push(entry);
  }
  const missing = open.filter(({ id }) => !named.has(id)).map(({ id }) => id);
  if (missing.length > 0) throw mismatch(`each open interrupt needs an answer; without one: ${missing.join(', ')}`);
  for (const decision of decisions) checkPayload(decision);
  return { decisions, late };
}

/** Makes the refusal of answers that do not fit the open interrupts. */
export function mismatch(message: string): RequestError {
  return new RequestError('RESUME_MISMATCH', message);
}

function checkPayload({ wait, entry: { status, payload } }: InterruptDecision): void {
  if (wait.kind === 'question') {
    if (status === 'resolved' && payload !== undefined) return;
    throw mismatch('a question needs an answer as its payload; to give up, cancel the run');
  }
  if (status === 'cancelled') return;
  if (!isObject(payload) || typeof payload.approved !== 'boolean')
    throw mismatch('the payload of an approval must be { approved, editedArgs?, note? }');
  if (payload.note !== undefined && payload.note !== null && typeof payload.note !== 'string')
    throw mismatch('the note of an approval must be a text');
}

/** Gives a decision to the run. @throws the error of the control, for example {ANSWER_REFUSED} */
export async function decideInterrupt(
  control: RunControl,
  { wait, entry }: InterruptDecision,
  by: Person | undefined,
): Promise<void> {
  const { status, payload } = entry;
  const person = by ? { by } : {};
  if (wait.kind === 'question') return void (await control.answer(wait.id, payload as JsonValue, person));
  const said = status === 'resolved' && isObject(payload) ? payload : {};
  const text = typeof said.note === 'string' && said.note !== '' ? said.note : undefined;
  if (said.approved !== true) {
    await control.deny(wait.id, { ...person, ...(text ? { reason: text } : {}) });
    return;
  }
  const input =
    said.editedArgs === undefined || said.editedArgs === null ? {} : { input: said.editedArgs as JsonValue };
  const seen = wait.digest === undefined ? {} : { digest: wait.digest };
  await control.approve(wait.id, { ...person, ...input, ...(text ? { note: text } : {}), ...seen });
}

/** Ignores that another person was faster, or the wait is over: the stream shows what became of it. @throws any other error */
export function ignoreLate(error: unknown): void {
  if (!hasCode(error, 'ALREADY_ANSWERED') && !hasCode(error, 'WAIT_GONE')) throw error;
}

/**
 * Gives an answer to a wait that is not open any more.
 * @throws {RequestError} RESUME_MISMATCH for a wait that the run never had, or ended long ago
 */
export async function answerLate(control: RunControl, entry: ResumeEntry, by: Person | undefined): Promise<void> {
  const { interruptId, payload } = entry;
  const isApproval = entry.status === 'cancelled' || (isObject(payload) && typeof payload.approved === 'boolean');
  try {
    const wait = { id: interruptId, kind: isApproval ? 'approval' : 'question' };
    await decideInterrupt(control, { wait: wait as PersonWait, entry }, by);
  } catch (error) {
    if (hasCode(error, 'WAIT_GONE')) throw mismatch('an answer names no open interrupt');
    ignoreLate(error);
  }
}
