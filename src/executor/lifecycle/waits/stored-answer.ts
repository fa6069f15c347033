import { type Agent, definitionOf } from '../../../agent/agent.ts';
import { tierOf } from '../../../model/tier.ts';
import { type RunCheckpoint, toResumeState } from '../../../record/checkpoint.ts';
import type { Answer } from '../../../run/command.ts';
import { identityOf } from '../../../run/field-rows.ts';
import { beginProgress, type Progress } from '../../../run/progress.ts';
import { resumeProgress } from '../../../run/resume.ts';
import type { Person, Wait } from '../../../run/waits/wait.ts';
import { takesAnswer } from '../../../run/waits/wait-rules.ts';
import { restrict } from '../../../tool/toolbox.ts';
import { AnswerRefusedError } from '../../../values/errors.ts';
import { ownTools } from '../../effects/resolve.ts';
import { RunRedaction } from '../../host/redaction.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { admitAnswer, candidateOf, checkFit, isUnchecked, notEditable } from '../../run/waits/admit-answer.ts';
import type { JudgedLoop, JudgedRun } from '../../run/waits/judge-call.ts';
import { readStoredStart } from '../start.ts';
import { agentFor } from '../stored/recover-one-run.ts';

/** An answer to an open wait of a stored run. */
interface StoredAnswer {
  readonly record: RunCheckpoint;
  readonly wait: Wait;
  readonly answer: Answer;
  readonly by?: Person | undefined;
}

/**
 * Checks an answer that no process may read for days: a person learns now that it does not fit. What the record alone tells is checked
 * in any process, the rest where the agent of the run is known.
 * @returns whether the run may still refuse it: only the process that takes up the run can tell
 * @throws {ANSWER_REFUSED}
 */
export async function mayBeRefused(services: ExecutorServices, given: StoredAnswer): Promise<boolean> {
  const { wait, answer } = given;
  const { how, value = null, input } = answer;
  if (!takesAnswer(wait, how))
    throw new AnswerRefusedError(`wait ${wait.id} is of kind ${wait.kind}: ${how} does not answer it`);
  if (how === 'answer') await checkFit(services, wait, value);
  if (wait.kind !== 'approval' && !(wait.kind === 'question' && wait.approvers)) return false;
  if (input !== undefined && wait.kind === 'approval' && !wait.editable)
    throw new AnswerRefusedError(notEditable(wait));
  const run = judgedRecord(services, given.record);
  if (!run || !candidateOf(run, wait)?.tool)
    return wait.approvers !== undefined || input !== undefined || (run !== undefined && how === 'approve');
  try {
    const at = services.config.clock.now();
    const checked = await admitAnswer(run, { waitId: wait.id, answer, by: given.by, at });
    // The tool or its agent is another one here: the process that takes up the run may have the one that the person saw.
    return checked.how === 'approve' && (checked.again !== undefined || checked.unfit !== undefined);
  } catch (error) {
    if (isUnchecked(error)) return true;
    throw error;
  }
}

/** A stored run as its answers are checked here; undefined where its agent is not known, or cannot be made. */
function judgedRecord(services: ExecutorServices, record: RunCheckpoint): JudgedRun | undefined {
  const { meta, openPhase } = record;
  const known = agentFor(services, meta.agentId);
  const { agent, fault } = known ? readStoredStart(known, meta.agentId) : {};
  const { redact } = services.config;
  const phase = openPhase?.index ?? 0;
  const loop = agent && !fault && loopOf(services, agent, phase);
  const progress = agent && progressIn(agent, record);
  if (!loop || !progress) return undefined;
  const loops: (JudgedLoop | undefined)[] = [];
  loops[phase] = loop;
  return {
    runId: meta.runId,
    services,
    agent,
    progress,
    redaction: redact && new RunRedaction(redact),
    resources: { loops },
  };
}

/** Where the run is; undefined where its messages are no conversation, which the process that takes up the run reports. */
function progressIn(agent: Agent, record: RunCheckpoint): Progress | undefined {
  try {
    const fresh = beginProgress(record.meta, definitionOf(agent), identityOf(record));
    return resumeProgress(fresh, toResumeState(record));
  } catch {
    return undefined;
  }
}

/** The tools of one phase. Calls of sub-agents are left to the process that takes up the run. */
function loopOf(services: ExecutorServices, agent: Agent, index: number): JudgedLoop | undefined {
  const phase = agent.phases?.[index];
  const tier = tierOf(phase?.model ?? agent.model ?? services.config.defaults.model);
  try {
    const whole = ownTools({ agent, services });
    const names = phase?.bare ? [] : phase?.tools;
    return { tier, toolbox: names ? restrict(whole, names) : whole };
  } catch {
    return undefined;
  }
}
