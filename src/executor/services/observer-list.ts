import type { RunEvent } from '../../run/events/body.ts';
import type { ObservedRun, Observer } from '../host/observers.ts';
import { frozenEvent } from './event-stream.ts';

/**
 * Delivers the events of one run to its observers. Each gets the events in order, even if an observer causes the next
 * event.
 */
export class ObserverList {
  /** The list of all runs, which they share, until an observer is added. */
  #observers: readonly Observer[];
  /** Events that an observer caused while another event was being delivered. */
  #caused: RunEvent[] | undefined;
  #isBusy = false;

  /** @param observers the observers of all runs */
  constructor(observers: readonly Observer[]) {
    this.#observers = observers;
  }

  /** Adds an observer of this run alone, before the existing ones. */
  add(observer: Observer): void {
    this.#observers = [observer, ...this.#observers];
  }

  /** Observers must not throw. */
  pass(event: RunEvent, run: ObservedRun): void {
    if (this.#isBusy) {
      this.#caused ??= [];
      this.#caused.push(event);
      return;
    }
    this.#isBusy = true;
    this.#toAll(event, run);
    for (let next = this.#caused?.shift(); next; next = this.#caused?.shift()) this.#toAll(next, run);
    this.#isBusy = false;
  }

  #toAll(event: RunEvent, run: ObservedRun): void {
    for (const observer of this.#observers) if (!observer.isIdle?.()) observer.onEvent(frozenEvent(event), run);
  }
}
