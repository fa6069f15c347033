import {
  createWebSocketInspector,
  createWebSocketReceiver,
  type StatelyActorEvent,
  type StatelyInspectionEvent,
} from '@statelyai/inspect';
import { onTestFinished } from 'vitest';
import type { InspectionEvent } from 'xstate';
import { startRelay } from './relay.ts';

const isActor = (frame: StatelyInspectionEvent): frame is StatelyActorEvent => frame.type === '@xstate.actor';
const isMark = (sessionId: string) => sessionId.startsWith('mark:');

/**
 * The real client of the Stately inspector, connected over loopback to its own receiver. Both are up when this resolves;
 * what the client was told of is there after `arrived()`.
 */
export async function startClient() {
  hidePage();
  const relay = await startRelay();
  const client = createWebSocketInspector({ url: relay.url });
  const receiver = createWebSocketReceiver({ server: relay.url });
  const received: StatelyInspectionEvent[] = [];
  receiver.subscribe((frame) => {
    if (!isMark(frame.sessionId)) received.push(frame);
  });
  await relay.connected(2);
  onTestFinished(async () => {
    client.stop();
    await relay.close();
  });
  /** Resolves when the receiver gets the next such frame. */
  const next = (isIt: (frame: StatelyInspectionEvent) => boolean) =>
    new Promise<void>((resolve) => {
      const { unsubscribe } = receiver.subscribe((frame) => {
        if (!isIt(frame)) return;
        unsubscribe();
        resolve();
      });
    });
  let marks = 0;
  return {
    url: relay.url,
    /** The client's observer, as hosts hand it to XState. */
    observer: client.inspect,
    /** The same observer; the type of our own option names functions only. */
    inspect: client.inspect as unknown as (event: InspectionEvent) => void,
    /** What the receiver got, in order. */
    received,
    /** The same as the texts that went over the wire. */
    get frames(): string[] {
      return relay.frames.filter((frame) => !isMark(JSON.parse(frame).sessionId));
    },
    /** The names of the actors that were announced, in order. */
    get actors(): string[] {
      return received.filter(isActor).map(({ name }) => name);
    },
    /** The announcement of an actor; the first of that name, or another. */
    actor(name: string, position = 0): StatelyActorEvent {
      const found = received.filter(isActor).filter((frame) => frame.name === name)[position];
      if (!found) throw new Error(`${name} was not announced, only ${this.actors.join()}`);
      return found;
    },
    next,
    /** Waits until everything that the client was told of so far has come through. */
    async arrived(): Promise<void> {
      marks += 1;
      const mark = `mark:${marks}`;
      const seen = next(({ sessionId }) => sessionId === mark);
      // The client does its work in timers of no delay; this one was made after all of theirs.
      setTimeout(() => client.event(mark, 'mark'), 0);
      await seen;
    },
  };
}

/**
 * Hides the document that an earlier test of this worker has left: the client would wait for its animation frames, and tell
 * nothing meanwhile.
 */
function hidePage(): void {
  const page: unknown = Reflect.get(globalThis, 'window');
  if (page === undefined) return;
  Reflect.deleteProperty(globalThis, 'window');
  onTestFinished(() => void Reflect.set(globalThis, 'window', page));
}

export type Client = Awaited<ReturnType<typeof startClient>>;
