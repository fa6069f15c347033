import type { Agent } from '../../../agent/agent.ts';
import { phaseFactsOf } from '../../../agent/phase.ts';
import type { RunCheckpoint } from '../../../record/checkpoint.ts';
import { type ParkedReason, staysParked } from '../../../run/fields.ts';
import { hasUnknownOutcome } from '../../../run/open-step.ts';
import { isSamePipeline } from '../../../run/pipeline.ts';
import { migrateState, unfitnessOf } from '../../../workflow/fit.ts';
import { programOf } from '../../../workflow/program.ts';
import type { Config } from '../../host/config.ts';

/** For a diagnosis without an executor. */
const DEFAULT_MAX_ATTEMPTS = 3;

/** What a start knows besides the record. */
interface StartRules {
  /** Default `tell`. */
  readonly onUnknownOutcome?: Config['onUnknownOutcome'] | undefined;
  /** Default `refuse`. */
  readonly onDefinitionChange?: Config['onDefinitionChange'] | undefined;
  /** Absent: changed phases and machines are not looked for. */
  readonly agent: Agent | undefined;
  readonly maxAttempts?: number | undefined;
}

/** What a start does with a record: it parks the run, or continues it from this record. */
type Start = { readonly parks: ParkedReason } | { readonly record: RunCheckpoint };

/**
 * Returns what a start does with a record: parks it (attempts, changed phases or machine, unknown outcome), or continues from it. A
 * workflow of another version is migrated here, once.
 */
export function startByRules(record: RunCheckpoint, rules: StartRules): Start {
  const { maxAttempts = DEFAULT_MAX_ATTEMPTS, onUnknownOutcome, agent } = rules;
  if (record.parked && staysParked(record.parked.code)) return { parks: record.parked };
  if (record.attempts > maxAttempts) {
    const reason = `it was started ${maxAttempts} times in a row without recording anything new`;
    return { parks: { code: 'TOO_MANY_ATTEMPTS', reason } };
  }
  if (onUnknownOutcome === 'park' && record.openStep && hasUnknownOutcome(record.openStep)) {
    const reason = 'the process died during a call that must not be repeated';
    return { parks: { code: 'OUTCOME_UNKNOWN', reason } };
  }
  if (!agent || record.outcome) return { record };
  return programOf(agent) ? workflowStart(agent, record) : pipelineStart(agent, record, rules);
}

function pipelineStart(agent: Agent, record: RunCheckpoint, { onDefinitionChange = 'refuse' }: StartRules): Start {
  if (onDefinitionChange !== 'refuse' || isPipelineSame(agent, record)) return { record };
  const reason = `the phases of agent ${agent.id} are not those that it was begun with (onDefinitionChange)`;
  return { parks: { code: 'DEFINITION_CHANGED', reason } };
}

/** Whether the agent's list of phases is still the one that the record was made with. */
function isPipelineSame(agent: Agent, record: RunCheckpoint): boolean {
  const opening = 1 + (record.earlier?.length ?? 0);
  const hasBegun = record.messages.length > opening || record.openStep !== undefined;
  return isSamePipeline(record, phaseFactsOf(agent.phases, 1), hasBegun);
}

/** A workflow continues only in a machine in which its states are still what they were, or in which its migration has put it. */
function workflowStart(agent: Agent, record: RunCheckpoint): Start {
  const program = programOf(agent);
  const { workflow, definition } = record;
  if (!program || !workflow) return { record };
  const migrated = isOlder(agent, definition)
    ? migrateState(program, { ...record, workflow }, definition?.version ?? '')
    : { state: workflow };
  if ('why' in migrated)
    return { parks: { code: 'MIGRATION_FAILED', reason: `workflow ${agent.id}: ${migrated.why}` } };
  const { state } = migrated;
  const why = state.isMigrated ? undefined : unfitnessOf(program, state);
  if (why === undefined) return { record: { ...record, workflow: state } };
  return { parks: { code: 'DEFINITION_CHANGED', reason: `workflow ${agent.id}: ${why} since the run entered it` } };
}

const isOlder = ({ version }: Agent, definition: RunCheckpoint['definition']): boolean =>
  definition !== undefined && definition.version !== version;

/** Returns whether a start brings a workflow into a state of another version: what that begins must begin, also if the run rests. */
export function isMigrating(agent: Agent, { workflow, definition }: RunCheckpoint): boolean {
  return workflow !== undefined && programOf(agent)?.migrate !== undefined && isOlder(agent, definition);
}
