import { systemClock } from '../../values/clock.ts';
import { yieldToEventLoop } from '../../values/event-loop.ts';
import type { ActiveRun } from '../run/active-run.ts';

/** Waits until other runs have had their turn of the event loop: then a workflow takes all that has come meanwhile. Never rejects. */
export async function takeTurn(_: unknown, { services }: ActiveRun): Promise<void> {
  const turn = services.config.clock === systemClock ? yieldToEventLoop() : undefined;
  if (turn) await turn;
}
