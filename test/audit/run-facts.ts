import type { AuditedTool, AuditTotals } from '../../src/audit/port.ts';
import type { RunInfo } from '../../src/run/request.ts';
import { noUsage } from '../../src/values/usage.ts';

export const noon = Date.UTC(2026, 10, 22, 12);

export function info(runId: string, rest: Partial<RunInfo> = {}): RunInfo {
  return {
    runId,
    subjectId: 'researcher',
    name: 'Researcher',
    callerId: 'ada',
    channelId: '',
    guildId: '',
    parentRunId: '',
    modelTier: 'fast',
    prompt: 'Look it up',
    inputs: {},
    startedAt: noon,
    maxIterations: 20,
    ...rest,
  };
}

export const usage = (inputTokens: number, outputTokens = 0) => ({ ...noUsage, inputTokens, outputTokens });

export function totals(rest: Partial<AuditTotals> = {}): AuditTotals {
  return { usage: usage(10, 5), iterations: 1, elapsedMs: 1_000, saveErrors: 0, ...rest };
}

export function tool(rest: Partial<AuditedTool> = {}): AuditedTool {
  return {
    step: 1,
    callId: 'c1',
    name: 'lookup',
    effect: 'read',
    attempt: 1,
    input: { id: '7' },
    output: { type: 'text', value: 'found' },
    ms: 12,
    ...rest,
  };
}
