import { type AnyActor, type AnyActorLogic, createActor, fromPromise } from 'xstate';
import { type Asked, answerTo, type MachinePlan, machineOf, type Source, sources } from './machines.ts';

/** A call as both worlds know it. */
export const callName = (src: string, asked: unknown): string => `${src} ${JSON.stringify(asked)}`;

interface LiveCall {
  readonly name: string;
  readonly actorId: string;
  readonly startedAt: number;
  stoppedAt?: number;
  answer: (how: 'as drawn' | 'unknown') => void;
}

interface Timer {
  readonly due: number;
  /** When it was set. */
  readonly since: number;
  readonly run: () => void;
}

/** The uninterrupted actor of XState on a clock of its own: what a durable run is compared with. */
export class LiveActor {
  readonly #timers = new Set<Timer>();
  readonly #open = new Map<string, LiveCall>();
  readonly #children = new Map<string, Child>();
  readonly #replaced: Child[] = [];
  readonly #actor: AnyActor;
  readonly calls: LiveCall[] = [];
  /** What no comparison can follow: an actor or a timer that began again under an open id, which XState leaves running. */
  excepted: string | undefined;
  /** The events that the machine got. */
  readonly trace: string[] = [];
  now = 0;

  constructor(plan: MachinePlan) {
    const actors = Object.fromEntries(sources.map((src) => [src, this.#logicOf(src, plan.isTogether)]));
    const clock = {
      setTimeout: (run: () => void, ms: number) => {
        const timer = { due: this.now + ms, since: this.now, run };
        this.#timers.add(timer);
        return timer;
      },
      clearTimeout: (timer: unknown) => this.#timers.delete(timer as Timer),
    };
    this.#actor = createActor(machineOf(plan, actors as { [name in Source]: AnyActorLogic }), {
      clock: clock as never,
      logger: () => {},
      inspect: (event) => {
        if (event.type === '@xstate.actor') this.#made(event.actorRef as unknown as Child);
        if (event.type !== '@xstate.event' || event.actorRef !== this.#actor) return;
        this.trace.push(`${this.now} ${event.event.type}`);
      },
    });
    this.#watchTimers();
    this.#actor.subscribe({ next: () => this.#check(), error: () => {} });
  }

  async start(): Promise<void> {
    this.#actor.start();
    await settled();
  }

  /** When the next timers fire or calls answer; the second of them, if it is another moment. @param isTogether whether it always is */
  next(isTogether: boolean): { readonly at: number; readonly after: number } | undefined {
    const [first, ...more] = [...this.#timers].sort((a, b) => a.due - b.due);
    if (!first) return undefined;
    const other = more.find(({ due, since }) => isTogether || due !== first.due || since !== first.since);
    return { at: first.due, after: other?.due ?? Number.POSITIVE_INFINITY };
  }

  /** Lets time pass, and what is due come. */
  async moveTo(time: number): Promise<void> {
    for (;;) {
      const timer = [...this.#timers].filter(({ due }) => due <= time).sort((a, b) => a.due - b.due)[0];
      if (!timer) break;
      this.now = Math.max(this.now, timer.due);
      this.#timers.delete(timer);
      timer.run();
      await settled();
    }
    this.now = time;
  }

  async send(event: { readonly type: string }): Promise<void> {
    this.#actor.send(event);
    await settled();
  }

  /** The call was under way when a process died, and no process knows whether it took effect. */
  async makeUnknown(name: string, at: number): Promise<boolean> {
    this.now = at;
    const call = [...this.#open.values()].find((each) => each.name === name);
    call?.answer('unknown');
    await settled();
    return call !== undefined;
  }

  get end() {
    const snapshot = this.#actor.getSnapshot() as { status: string; value: unknown; context: unknown; output: unknown };
    if (snapshot.status === 'error') return { status: 'error' };
    if (snapshot.status === 'done') return { status: 'done', output: snapshot.output };
    const { system, sessionId } = this.#actor as unknown as { system: Scheduling; sessionId: string };
    const pending = Object.values(system._snapshot._scheduledEvents).filter(
      ({ source }) => source.sessionId === sessionId,
    );
    return {
      status: 'active',
      value: snapshot.value,
      context: snapshot.context,
      timers: pending.map(({ id }) => id).sort(),
      calls: [...this.#open.keys()].sort(),
    };
  }

  #logicOf(src: Source, isTogether: boolean): AnyActorLogic {
    return fromPromise(({ input, self, signal }) => {
      const asked = input as Asked;
      const { ms, output, code } = answerTo(src, asked, isTogether);
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const call: LiveCall = {
        ...{ name: callName(src, asked), actorId: self.id, startedAt: this.now },
        answer: (how) => {
          this.#timers.delete(timer);
          if (this.#open.get(self.id) === call) this.#open.delete(self.id);
          const failure = how === 'unknown' ? 'OUTCOME_UNKNOWN' : code;
          if (failure === undefined) resolve(output);
          else reject(Object.assign(new Error(failure), { code: failure }));
        },
      };
      const timer = { due: this.now + ms, since: this.now, run: () => call.answer('as drawn') };
      this.#open.set(self.id, call);
      this.calls.push(call);
      this.trace.push(`${this.now} begins ${self.id} ${call.name} ${ms}`);
      signal.addEventListener('abort', () => {
        call.stoppedAt = this.now;
        this.#timers.delete(timer);
        if (this.#open.get(self.id) === call) this.#open.delete(self.id);
      });
      if (ms === 0) call.answer('as drawn');
      else this.#timers.add(timer);
      return promise;
    }) as unknown as AnyActorLogic;
  }

  /** Also one that never starts takes the place of the one before. */
  #made(child: Child): void {
    const before = this.#children.get(child.id);
    if (before) this.#replaced.push(before);
    this.#children.set(child.id, child);
  }

  /** After a transition and all that it stops. */
  #check(): void {
    const { _nodes } = this.#actor.getSnapshot() as { _nodes: StateNode[] };
    // Eventless transitions of parallel states come in the order in which these were entered last, which XState's own restore forgets.
    _nodes.sort((one, other) => one.order - other.order);
    if (!isWhole(_nodes)) this.excepted = 'states are active that its own snapshot would not restore';
    for (const { id, _processingStatus } of this.#replaced.splice(0))
      if (_processingStatus !== STOPPED) this.excepted = `actor ${id} began again`;
  }

  #watchTimers(): void {
    const { system } = this.#actor as unknown as { system: Scheduling };
    const { schedule } = system.scheduler;
    system.scheduler.schedule = (source, target, event, delay, id) => {
      if (`${source.sessionId}.${id}` in system._snapshot._scheduledEvents) this.excepted = `timer ${id} was set again`;
      schedule(source, target, event, delay, id);
    };
  }
}

interface StateNode {
  readonly type: string;
  readonly order: number;
  readonly parent?: StateNode;
  readonly states: { readonly [key: string]: StateNode };
}

/** XState leaves its root, or a region, and does not enter it again, on some ways through a history. */
function isWhole(nodes: readonly StateNode[]): boolean {
  const active = new Set(nodes);
  return nodes.every((node) => {
    const all = Object.values(node.states).filter(({ type }) => type !== 'history');
    const inside = all.filter((each) => active.has(each)).length;
    const isParentActive = node.parent === undefined || active.has(node.parent);
    return isParentActive && inside === (node.type === 'parallel' ? all.length : Math.min(1, all.length));
  });
}

interface Child {
  readonly id: string;
  readonly _processingStatus: number;
}

/** XState's own mark of an actor that was stopped. */
const STOPPED = 2;

interface Scheduling {
  readonly _snapshot: {
    readonly _scheduledEvents: {
      readonly [id: string]: { readonly id: string; readonly source: { readonly sessionId: string } };
    };
  };
  readonly scheduler: {
    schedule(source: { readonly sessionId: string }, target: unknown, event: unknown, delay: number, id: string): void;
  };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
