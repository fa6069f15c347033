import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import type { CommandToSend } from '../commands.ts';
import { isIntact } from '../encoding/checksum.ts';
import { sendCommand } from '../rules/inbox.ts';
import { checkClaim } from '../rules/lease.ts';
import {
  checkRoom,
  type ExpectWrite,
  isNewSignal,
  type KnownSignal,
  type SignalWrite,
  type StoredSignal,
  type TopicWait,
} from '../topics.ts';
import { make, type Tables } from './writes.ts';

interface SignalRow {
  readonly signal: string;
  readonly checksum: number;
  readonly content: string;
}

/** The rows of `waits` and `signals`. An expired signal counts as removed. */
export class TopicTables {
  readonly #now: () => number;
  readonly #findWait: StatementSync;
  readonly #oldestWait: StatementSync;
  readonly #insertWait: StatementSync;
  readonly #deleteWait: StatementSync;
  readonly #deleteWaits: StatementSync;
  readonly #findSignal: StatementSync;
  readonly #oldestSignal: StatementSync;
  readonly #countSignals: StatementSync;
  readonly #putSignal: StatementSync;
  readonly #deliver: StatementSync;
  readonly #deleteSignal: StatementSync;
  readonly #forget: StatementSync;

  constructor(db: DatabaseSync, now: () => number) {
    this.#now = now;
    this.#findWait = db.prepare('SELECT topic FROM waits WHERE run_id = ? AND wait_id = ?');
    this.#oldestWait = db.prepare('SELECT run_id, wait_id FROM waits WHERE topic = ? ORDER BY no LIMIT 1');
    this.#insertWait = db.prepare('INSERT INTO waits (topic, run_id, wait_id) VALUES (?, ?, ?)');
    this.#deleteWait = db.prepare('DELETE FROM waits WHERE run_id = ? AND wait_id = ?');
    this.#deleteWaits = db.prepare('DELETE FROM waits WHERE run_id = ?');
    this.#findSignal = db.prepare('SELECT run_id FROM signals WHERE signal = ? AND until > ?');
    const kept = 'FROM signals WHERE topic = ? AND run_id IS NULL AND until > ?';
    this.#oldestSignal = db.prepare(`SELECT signal, checksum, content ${kept} ORDER BY no LIMIT 1`);
    this.#countSignals = db.prepare(`SELECT count(*) AS count ${kept}`);
    this.#putSignal = db.prepare(
      'INSERT OR REPLACE INTO signals (signal, topic, until, run_id, checksum, content) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#deliver = db.prepare('UPDATE signals SET run_id = ?, checksum = 0, content = NULL WHERE signal = ?');
    this.#deleteSignal = db.prepare('DELETE FROM signals WHERE signal = ?');
    this.#forget = db.prepare('DELETE FROM signals WHERE no IN (SELECT no FROM signals WHERE until <= ? LIMIT ?)');
  }

  topicOf({ runId, waitId }: TopicWait): string | undefined {
    return this.#findWait.get(runId, waitId)?.topic as string | undefined;
  }

  oldestWait(topic: string): TopicWait | undefined {
    const row = this.#oldestWait.get(topic) as { run_id: string; wait_id: string } | undefined;
    return row && { runId: row.run_id, waitId: row.wait_id };
  }

  addWait(topic: string, { runId, waitId }: TopicWait): void {
    this.#insertWait.run(topic, runId, waitId);
  }

  removeWait({ runId, waitId }: TopicWait): void {
    this.#deleteWait.run(runId, waitId);
  }

  /** The run is deleted: its waits are gone. */
  runGone(runId: string): void {
    this.#deleteWaits.run(runId);
  }

  known(key: string): KnownSignal | undefined {
    const row = this.#findSignal.get(key, this.#now()) as { run_id: string | null } | undefined;
    return row && { to: row.run_id };
  }

  /** The oldest kept signal of a topic; `text` is undefined if it is damaged. */
  oldestSignal(topic: string): { readonly key: string; readonly text: string | undefined } | undefined {
    const row = this.#oldestSignal.get(topic, this.#now()) as SignalRow | undefined;
    return row && { key: row.signal, text: isIntact(row.content, row.checksum) ? row.content : undefined };
  }

  keep(topic: string, { key, text, untilMs }: StoredSignal): void {
    checkRoom(Number(this.#countSignals.get(topic, this.#now())?.count));
    this.#putSignal.run(key, topic, untilMs, null, crc32(text), text);
  }

  /** A signal that was never kept is delivered. */
  noteDelivered(topic: string, { key, untilMs }: StoredSignal, to: string): void {
    this.#putSignal.run(key, topic, untilMs, to, 0, null);
  }

  /** A kept signal is delivered. */
  deliver(key: string, to: string): void {
    this.#deliver.run(to, key);
  }

  removeSignal(key: string): void {
    this.#deleteSignal.run(key);
  }

  /** Removes expired signals; -1 = all of them. @returns how many */
  forgetExpired(limit: number): number {
    return Number(this.#forget.run(this.#now(), limit).changes);
  }
}

/** Adds or withdraws a wait, in the transaction of its caller: see `WaitDriver`. @throws {LEASE_LOST} */
export function expectIn(tables: Tables, { claim, waitId, topic, commandId, commandOf }: ExpectWrite): void {
  const { topics, leases, inboxes } = tables;
  const wait = { runId: claim.runId, waitId };
  checkClaim(leases.find(claim.runId), claim);
  const before = topics.topicOf(wait);
  if (before === topic) return;
  if (before !== undefined) topics.removeWait(wait);
  if (topic === null || inboxes.has(claim.runId, commandId)) return;
  for (let signal = topics.oldestSignal(topic); signal; signal = topics.oldestSignal(topic)) {
    const { key, text } = signal;
    const command = text === undefined ? undefined : commandOf({ text });
    if (command) {
      if (sent(tables, command)) topics.deliver(key, claim.runId);
      return;
    }
    topics.removeSignal(key);
  }
  topics.addWait(topic, wait);
}

/** Delivers or keeps a signal, in the transaction of its caller. @returns the run that has it @throws {UNDELIVERED} */
export function signalIn(tables: Tables, signal: SignalWrite): string | undefined {
  const { topics } = tables;
  const { topic, key, commandFor } = signal;
  const known = topics.known(key);
  if (!isNewSignal(signal, known)) return known?.to ?? undefined;
  for (let wait = topics.oldestWait(topic); wait; wait = topics.oldestWait(topic)) {
    const isThere = sent(tables, commandFor(wait));
    topics.removeWait(wait);
    if (!isThere) continue;
    topics.noteDelivered(topic, signal, wait.runId);
    return wait.runId;
  }
  topics.keep(topic, signal);
  return undefined;
}

/** Sends a command. @returns false if its run has no record @throws {UNDELIVERED} */
function sent(tables: Tables, command: CommandToSend): boolean {
  const { runId } = command;
  if (!tables.records.find(runId)) return false;
  make(tables, { runId, decide: sendCommand(command, { keepsDue: true }) });
  return true;
}
