import { type Agent, definitionOf } from '../../../agent/agent.ts';
import { type RunCheckpoint, toCheckpoint } from '../../../record/checkpoint.ts';
import { ProgressRedaction } from '../../../record/redact-progress.ts';
import { births, fingerprintOf } from '../../../run/identity.ts';
import { beginProgress } from '../../../run/progress.ts';
import type { ImagePart, Labels, RunRequest } from '../../../run/request.ts';
import type { BegunTurn } from '../../../store/thread-port.ts';
import { enterMessage, type Message } from '../../../values/message.ts';
import { Redactor } from '../../../values/redact.ts';
import { metaFor, plainRequest } from '../../host/request.ts';
import type { ExecutorServices } from '../../run/active-run.ts';
import { launch } from '../start.ts';
import { agentFor } from '../stored/recover-one-run.ts';

/** A message of a user as its first record needs it. */
export interface UserTurn {
  readonly callerId: string;
  readonly text: string;
  readonly files: readonly ImagePart[];
  readonly message: Message;
  readonly labels: Labels;
}

/** Makes the first record of the run that a message of a thread begins. The store sets its id, and its place in the thread. */
export function firstRecordOf({ config }: ExecutorServices, agent: Agent, turn: UserTurn): RunCheckpoint {
  const { callerId, text: prompt, files: images, labels } = turn;
  const request: RunRequest = {
    ...plainRequest('turn', prompt),
    ...{ callerId, images },
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
  };
  const fingerprint = fingerprintOf({ ...request, agentId: agent.id });
  const now = config.clock.now();
  const meta = metaFor(agent, request, config.defaults.model);
  const begun = beginProgress(meta, definitionOf(agent), {
    ...request,
    fingerprint,
    birth: births.make(request.runId),
    beganAt: now,
  });
  const redaction = config.redact && new ProgressRedaction(new Redactor(config.redact, 'record'));
  const record = toCheckpoint(redaction?.progress(begun) ?? begun, now, 1);
  const message = redaction?.message(turn.message) ?? turn.message;
  return { ...record, attempts: 0, messages: [enterMessage(message)] };
}

/**
 * Starts the run of a turn whose first record is stored. Another process may have it already. Never rejects.
 * @param agent of the thread; default: the agent that this executor knows by the id in the record
 */
export async function startTurn(
  services: ExecutorServices,
  { runId, agentId }: BegunTurn,
  agent?: Agent,
): Promise<void> {
  const found = agent ?? agentFor(services, agentId);
  if (services.registry.live(runId)) return;
  // An executor that has the agent takes it up.
  if (!found || services.isShutDown) return services.config.hints.tell(runId);
  try {
    await launch(services, found, {
      seed: {
        request: plainRequest(runId, ''),
        isNewId: false,
        origin: 'started',
        mustExist: true,
        ...(agent ? { hasSender: true } : {}),
      },
      options: {},
    });
  } catch (error) {
    services.config.warn('turn.start.failed', { runId, error });
  }
}
