import type { Person, Wait } from '../run/waits/wait.ts';
import { sha256 } from '../values/digest.ts';
import { canonicalJson, frozenJson, isObject, type JsonValue } from '../values/json.ts';
import { checkKeys, checkWord, type KnownKeys, kindOf } from '../values/known-options.ts';
import type { Tool, ToolInvocation } from './define-tool.ts';

/**
 * The decision about a tool call before it starts. `run`: it starts; with a reason, which the record keeps. `ask`: a person
 * decides. `deny`: it does not start, and the model reads the reason.
 */
export type Verdict = 'run' | 'ask' | { readonly run: string } | { readonly deny: string };

/** The call that is judged. */
export interface ApprovalContext {
  readonly runId: string;
  readonly callId: string;
  readonly agentId: string;
  /** The step of the call, from 1. */
  readonly step: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly invocation: ToolInvocation;
}

/** An answer whose person is to be checked. */
export interface ApproverCheck<Input = unknown> {
  readonly wait: Extract<Wait, { kind: 'approval' }>;
  readonly by: Person;
  /** The input that would run. */
  readonly input: Input;
}

/** An answer to a question of a workflow, whose person is to be checked. */
export interface AnswererCheck<Input = unknown> {
  readonly wait: Extract<Wait, { kind: 'question' }>;
  readonly by: Person;
  /** The input of the invoke that asks. */
  readonly input: Input;
  readonly value: JsonValue;
}

/**
 * Says whether a person may answer. Asked where the answer is sent, if the workflow is known there, and by the process that has the run. A
 * throw refuses.
 */
export type Answerers<Input = unknown> = (
  check: AnswererCheck<Input>,
) => true | { readonly refused: string } | Promise<true | { readonly refused: string }>;

/** How persons decide about the calls of a tool. */
export interface Approval<Input = unknown> {
  /**
   * The question to the person. The tool and its input are always shown.
   * @default none: the tool and its input are shown
   * @example prompt: ({ cents }) => `Refund ${cents} cents?`
   */
  prompt?(input: Input): string;
  /**
   * Facts for the person besides the input, as JSON.
   * @default none
   * @example detail: ({ orderId }) => ({ page: `https://shop.example/orders/${orderId}` })
   */
  detail?(input: Input): JsonValue;
  /**
   * How long a call waits. `Infinity` = without end.
   * @default 604_800_000
   */
  readonly expiresInMs?: number;
  /**
   * When the time is over: the call is denied, the run fails, or it parks until a person looks at it.
   * @default 'deny'
   */
  readonly onExpiry?: 'deny' | 'fail' | 'park';
  /**
   * Says whether a person may decide about this call. Asked when the run takes the answer, in its own process. A throw refuses.
   * @default every person
   * @example approvers: ({ by }) => (by.id === 'lead' ? true : { refused: 'only a lead' })
   */
  approvers?(
    check: ApproverCheck<Input>,
  ): true | { readonly refused: string } | Promise<true | { readonly refused: string }>;
  /**
   * How many different persons must approve. One denial decides.
   * @default 1
   * @example quorum: 2
   */
  readonly quorum?: number;
  /**
   * Whether a person may change the input.
   * @default false
   */
  readonly editable?: boolean;
}

/** Whether calls of a tool need an approval: always, or by their input. */
export type NeedsApproval<Input = unknown> =
  | boolean
  | ((input: Input, context: ApprovalContext) => boolean | Verdict | Promise<boolean | Verdict>);

/** How long a call waits for an approval if its tool does not say so, ms. */
export const APPROVAL_EXPIRES_MS = 604_800_000;

const approvalKeys: KnownKeys<Approval> = {
  prompt: true,
  detail: true,
  expiresInMs: true,
  onExpiry: true,
  approvers: true,
  quorum: true,
  editable: true,
};

/** Checks a tool's rules for approvals. @throws {TypeError} */
export function checkApproval(name: string, needsApproval: unknown, approval: unknown): void {
  const of = `tool "${name}"`;
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval))
    throw new TypeError(`${of}: needsApproval must be true, false or a function, not ${kindOf(needsApproval)}`);
  if (approval === undefined) return;
  if (!isObject(approval)) throw new TypeError(`${of}: approval must be an object, not ${kindOf(approval)}`);
  checkKeys(approval, approvalKeys, { of, at: 'approval' });
  for (const key of ['prompt', 'detail', 'approvers'] as const) {
    if (approval[key] !== undefined && typeof approval[key] !== 'function')
      throw new TypeError(`${of}: approval.${key} must be a function, not ${kindOf(approval[key])}`);
  }
  const { expiresInMs, quorum, editable } = approval;
  checkWord(`${of}: approval.onExpiry`, approval.onExpiry, ['deny', 'fail', 'park']);
  if (expiresInMs !== undefined && !(typeof expiresInMs === 'number' && expiresInMs > 0))
    throw new TypeError(`${of}: approval.expiresInMs must be a number above 0`);
  checkQuorum(`${of}: approval.quorum`, quorum);
  if (editable !== undefined && typeof editable !== 'boolean')
    throw new TypeError(`${of}: approval.editable must be true or false`);
}

/** Checks how many persons must agree. @throws {TypeError} */
export function checkQuorum(what: string, quorum: unknown): void {
  if (quorum === undefined || (Number.isSafeInteger(quorum) && Number(quorum) > 0 && Number(quorum) <= MAX_QUORUM))
    return;
  throw new TypeError(`${what} must be a whole number from 1 to ${MAX_QUORUM}`);
}

/** Most persons whose approval one call may need: the record holds their votes. */
const MAX_QUORUM = 100;

/**
 * Reads what a tool's own rule returned as the verdict on a call; undefined if it is none. A boolean says whether a person must
 * decide.
 */
export function verdictFrom(value: unknown): Verdict | undefined {
  if (typeof value === 'boolean') return value ? 'ask' : 'run';
  return policyVerdictFrom(value);
}

/** Reads what a policy returned as a verdict; undefined if it is none. A boolean is none: `true` could mean that a call may run. */
export function policyVerdictFrom(value: unknown): Verdict | undefined {
  if (value === 'run' || value === 'ask') return value;
  if (!isObject(value)) return undefined;
  const { run, deny } = value;
  // Both at once contradict each other.
  if (typeof run === 'string' && deny === undefined) return { run };
  return typeof deny === 'string' && run === undefined ? { deny } : undefined;
}

/** Returns a hash of what a tool asks of a call and of the persons who decide about it. */
export function toolHashOf(tool: Tool): string {
  const known = hashes.get(tool);
  if (known !== undefined) return known;
  const { quorum = 1, editable = false, onExpiry = 'deny', approvers } = tool.approval ?? {};
  const asks = { quorum, editable, onExpiry, approvers: approvers !== undefined };
  // Not more of the tool: a text for the model may change with each deploy.
  const hash = sha256(canonicalJson([frozenJson(tool.input.jsonSchema, 'schema'), asks])).slice(0, 32);
  hashes.set(tool, hash);
  return hash;
}

const hashes = new WeakMap<Tool, string>();
