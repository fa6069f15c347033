import type { Wait } from '../../index.ts';
import type { ModelWait } from '../../run/waits/wait.ts';
import type { JsonObject } from '../../values/json.ts';
import type { RunDataPart, WaitDataPart } from './ui-chunk.ts';

/** Returns whether only a person ends a wait, apart from its expiry. */
export function isForChat({ kind }: Pick<Wait, 'kind'>): boolean {
  return kind === 'approval' || kind === 'question';
}

/** Returns what a page shows of an open wait. */
export function waitPart(wait: Wait): WaitDataPart {
  const { id, kind, createdAt, dueAt, callId, tool } = wait;
  return {
    ...{ id, kind, state: 'open', createdAt },
    ...(dueAt === undefined ? {} : { dueAt }),
    ...(callId === undefined ? {} : { callId }),
    ...(tool === undefined ? {} : { tool }),
    ...ofKind(wait),
  };
}

/** What a person reads before the decision on a call. The page posts it back, so it has the digest. */
export function approvalDescriptor(wait: Extract<Wait, { kind: 'approval' }>): JsonObject {
  const { digest, detail, quorum, votes, editable, onExpiry, dueAt, input, changedBy } = wait;
  return {
    ...{ digest, quorum, votes: votes.length, editable, onExpiry },
    // The page shows the model's own input beside it.
    ...(input === undefined ? {} : { input }),
    ...(changedBy ? { changedBy: { ...changedBy } } : {}),
    ...(detail === undefined ? {} : { detail }),
    ...(dueAt === undefined ? {} : { dueAt }),
  };
}

function ofKind(wait: Wait): JsonObject {
  switch (wait.kind) {
    case 'approval':
      return { ...approvalDescriptor(wait), ...(wait.prompt === undefined ? {} : { prompt: wait.prompt }) };
    case 'question': {
      const { question, options, schema } = wait;
      return { question, ...(options ? { options } : {}), ...(schema ? { schema } : {}) };
    }
    case 'event':
      return { name: wait.name };
    case 'child':
      return { childRunId: wait.childRunId };
    default:
      return {};
  }
}

/** What a page shows of a run that waits for its model. */
export function modelWaitPart(wait: ModelWait): Pick<RunDataPart, 'retry' | 'limit'> {
  if (wait.kind === 'limit') {
    const { rule, turnAt } = wait;
    return { limit: { turnAt, ...(rule === undefined ? {} : { rule }) } };
  }
  const { error, failures, since, needsPerson, dueAt } = wait;
  return { retry: { code: error.code, failures, since, needsPerson, ...(dueAt === undefined ? {} : { dueAt }) } };
}
