import { isInboxFull, placesFor } from '../../run/command.ts';
import { type CommandToSend, refuseFull, refuseLarge, refuseMissing } from '../commands.ts';
import type { Claim } from '../port.ts';
import { changed, type Decide, factsOfRecord, lacking, ofInbox, ofLease, unchanged, type Writer } from './decision.ts';
import { checkClaim } from './lease.ts';

/* Which commands an inbox takes, and who removes them. */

/**
 * Decides whether a command is stored in the inbox of a run. A command that waits already is not added again.
 * @throws {RUN_NOT_FOUND} @throws {UNDELIVERED} if its inbox is full
 */
export function sendCommand(command: CommandToSend, { keepsDue }: Pick<Writer, 'keepsDue'> = {}): Decide<void> {
  const { runId, id, kind, text } = command;
  return (facts) => {
    if (facts.damage !== undefined) throw facts.damage;
    const need = lacking(facts, factsOfRecord({ keepsDue }));
    if (need) return need;
    if (facts.record === null) throw refuseMissing(runId);
    const { inbox } = facts;
    if (!inbox) return { need: ofInbox };
    if (inbox.has(id)) return unchanged;
    if (inbox.size >= placesFor(kind)) throw refuseFull(runId);
    if (isInboxFull(inbox.chars, text, kind)) throw refuseLarge(runId, inbox.chars);
    return changed(facts.due ? { send: command, due: 0 } : { send: command });
  };
}

/** Decides the removal of commands from the inbox of a run. @throws {LEASE_LOST} */
export function acknowledge(claim: Claim, ids: readonly string[]): Decide<void> {
  return (facts) => {
    const need = lacking(facts, ofLease);
    if (need) return need;
    checkClaim(facts.lease ?? undefined, claim);
    return changed({ forget: ids });
  };
}
