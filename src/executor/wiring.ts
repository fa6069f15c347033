import { Scheduler } from '../schedules/scheduler.ts';
import { newOwner } from '../store/owner.ts';
import { checkKeys } from '../values/known-options.ts';
import type { FollowedRuns } from './drive/followed-runs.ts';
import type { Fleet } from './fleet/fleet.ts';
import { shutdown } from './fleet/shut-down.ts';
import type { Config } from './host/config.ts';
import { SignalSwitch } from './host/process-signals.ts';
import { takeUpDue } from './lifecycle/due/take-up-due.ts';
import { hasScheduledEnded, startScheduled } from './lifecycle/scheduled-run.ts';
import { startRun } from './lifecycle/start.ts';
import { endChild } from './lifecycle/stored/cancel-stored.ts';
import { startTurn } from './lifecycle/threads/begin-turn.ts';
import { lookForHeldUp, passIfAwaited } from './lifecycle/threads/parked-turn.ts';
import { sendEvent } from './lifecycle/waits/send-event.ts';
import type { ExecutorServices } from './run/active-run.ts';
import { recordedText } from './run/record/stored-run.ts';
import { CommandInbox } from './services/command-inbox.ts';
import { DueSweep, type SweepParts } from './services/due/due-sweep.ts';
import { StuckRuns } from './services/due/stuck-runs.ts';
import { Services } from './services/executor-services.ts';

/** Makes the services that all runs of an executor share, with what the upper layers do for them. */
export function servicesOf(config: Config): ExecutorServices {
  const owner = newOwner();
  const { clock, warn, defaults } = config;
  const stuck = new StuckRuns(clock);
  const services: ExecutorServices = new Services(config, {
    owner,
    inbox: new CommandInbox(config.store, { clock, warn, owner, everyMs: defaults.controlMs, ms: defaults.portMs }),
    startChild: (agent, call) => startRun(services, agent, call),
    endChild: (childRunId, reason) => endChild(services, childRunId, { reason }),
    sendEvent: (runId, { id, event }) => sendEvent(services, runId, { event, options: { id } }),
    stuck,
    sweep: sweepOf(config, {
      stuck,
      takeUp: (runs) => takeUpDue(services, runs),
      onLook: () => {
        services.unknownAgents.look();
        services.noticeSweep.look();
        lookForHeldUp(services);
      },
    }),
    startTurn: (turn) => startTurn(services, turn),
    passParked: (runId) => passIfAwaited(services, runId),
    scheduler: schedulerOf(config, () => services),
  });
  return services;
}

function schedulerOf(config: Config, services: () => ExecutorServices): Scheduler | undefined {
  const { store, clock, random, warn, deployment, schedules, defaults } = config;
  if (!schedules || !store?.schedules) return undefined;
  return new Scheduler(schedules, {
    ...{ store: store.schedules, clock, random, warn, deployment, ms: defaults.portMs },
    recordOf: (run, of) => startScheduled(services(), run, of),
    hasEnded: (runId) => hasScheduledEnded(services(), runId),
    redacted: (text) => recordedText(services(), text),
    admitted: (runId) => {
      config.hints.tell(runId);
      void services().sweep.look();
    },
    outlive: (work) => services().outlive(work),
  });
}

function sweepOf(config: Config, parts: Pick<SweepParts, 'stuck' | 'takeUp' | 'onLook'>): DueSweep {
  const { store, clock, warn, random, defaults } = config;
  return new DueSweep(store?.due, { clock, warn, random, everyMs: defaults.dueMs, ...parts });
}

/** How an executor ends: by its own `shutdown`, or by a signal to its process. */
export function endingOf(
  services: ExecutorServices,
  { followed, fleet }: { readonly followed: FollowedRuns; readonly fleet: Fleet },
) {
  const leave = async (drainMs: number) => {
    followed.end();
    const departure = await shutdown(services, { fleet, drainMs });
    followed.close();
    return departure;
  };
  const signals = new SignalSwitch({
    config: services.config,
    live: () => services.registry.all().length,
    shutdown: leave,
  });
  const end = async (ending: { readonly drainMs?: number } = {}): Promise<void> => {
    checkKeys(ending, { drainMs: true }, { of: 'shutdown' });
    const { drainMs = 10_000 } = ending;
    await leave(drainMs);
    signals.off();
  };
  return { signals, end };
}
