import type { AnyActorRef, AnyStateMachine } from 'xstate';
import type { InspectedSteps } from '../../run/workflow/advanced.ts';
import type { WorkflowState } from '../../run/workflow/state.ts';
import type { JsonObject } from '../../values/json.ts';
import { programOf } from '../../workflow/program.ts';
import type { ActiveRun } from './active-run.ts';

/** An actor as XState's inspectors read it. The machine of a workflow, and its calls, are no actors of XState. */
interface InspectedActor {
  readonly id: string;
  readonly sessionId: string;
  readonly _parent: unknown;
  readonly system: unknown;
  readonly logic: AnyStateMachine | Readonly<Record<string, never>>;
  getSnapshot(): object;
}

/** XState's system, which hands events to the inspectors of the run, and of the host's machine around it. */
interface InspectedSystem {
  _sendInspectionEvent(event: object): void;
}

/**
 * The machine of a workflow for inspectors: an actor of its own below that of the run, with the calls of the machine as its children. Their
 * session ids are made of the run's id: they are the same in each process.
 */
class InspectedMachine {
  readonly #run: ActiveRun;
  readonly #self: InspectedActor;
  /** The open calls by the ids of their actors. */
  readonly #children = new Map<string, InspectedActor>();
  #isAnnounced = false;

  constructor(run: ActiveRun, machine: AnyStateMachine) {
    this.#run = run;
    this.#self = this.#actor(machine.id, { sessionId: `machine:${run.runId}`, parent: run.actor, logic: machine });
  }

  tell({ before, steps, error }: InspectedSteps): void {
    this.#announce(before);
    for (const { event, workflow } of steps) {
      this.#send('@xstate.event', this.#self, { sourceRef: this.#sourceOf(event), event });
      this.#send('@xstate.snapshot', this.#self, { event, snapshot: workflow.snapshot });
      this.#follow(workflow);
    }
    if (!error) return;
    for (const child of this.#children.values()) this.#end(child, { status: 'stopped' });
    this.#send('@xstate.snapshot', this.#self, {
      event: steps.at(-1)?.event ?? init,
      snapshot: { status: 'error', error },
    });
  }

  /** A machine that another process began is where it was stored. */
  #announce(before: WorkflowState | undefined): void {
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#send('@xstate.actor', this.#self);
    if (before?.snapshot.status === undefined) return;
    this.#send('@xstate.snapshot', this.#self, { event: init, snapshot: before.snapshot });
    this.#follow(before);
  }

  /** The actor from which an event comes; undefined: from outside. */
  #sourceOf({ type, actorId, ...result }: JsonObject): InspectedActor | undefined {
    const isOwn = typeof type === 'string' && type.startsWith('xstate.');
    if (!isOwn) return undefined;
    if (type === 'xstate.init') return this.#run.actor as unknown as InspectedActor;
    const child = this.#children.get(String(actorId));
    if (!child) return this.#self;
    this.#children.delete(String(actorId));
    this.#end(child, 'error' in result ? { status: 'error', ...result } : { status: 'done', ...result });
    return child;
  }

  /** The calls that a transition began, and those that it stopped. */
  #follow({ calls }: WorkflowState): void {
    for (const [actorId, child] of this.#children) {
      if (calls[actorId] !== undefined && child.sessionId.endsWith(`:${calls[actorId]}`)) continue;
      this.#children.delete(actorId);
      this.#end(child, { status: 'stopped' });
    }
    for (const [actorId, callId] of Object.entries(calls)) {
      if (this.#children.has(actorId)) continue;
      const sessionId = `machine:${this.#run.runId}:${callId}`;
      const child = this.#actor(actorId, { sessionId, parent: this.#self, logic: {} });
      this.#children.set(actorId, child);
      this.#send('@xstate.actor', child);
      this.#send('@xstate.event', child, { sourceRef: this.#self, event: init });
      this.#send('@xstate.snapshot', child, { event: init, snapshot: { status: 'active' } });
    }
  }

  #end(child: InspectedActor, snapshot: object): void {
    this.#send('@xstate.snapshot', child, { event: { type: 'task.done' }, snapshot });
  }

  #actor(
    id: string,
    { sessionId, parent, logic }: Pick<InspectedActor, 'sessionId' | 'logic'> & { readonly parent: unknown },
  ): InspectedActor {
    // An inspector that asks the actor gets no content: only events are redacted on their way.
    const getSnapshot = () => ({ status: 'active' });
    return { id, sessionId, _parent: parent, system: this.#run.actor.system, logic, getSnapshot };
  }

  #send(type: string, actorRef: InspectedActor, rest: object = {}): void {
    const { system } = this.#run.actor as AnyActorRef;
    (system as unknown as InspectedSystem)._sendInspectionEvent({ type, actorRef, ...rest });
  }
}

const init = { type: 'xstate.init' };

/** Tells the inspectors of a workflow's run what its machine did. */
export function tellInspectors(run: ActiveRun, steps: InspectedSteps): void {
  const program = programOf(run.agent);
  if (!program) return;
  run.resources.inspected ??= new InspectedMachine(run, program.machine);
  run.resources.inspected.tell(steps);
}
