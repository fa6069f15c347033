import { writeAtomically } from '../../files/atomic-write.ts';
import { orAbsent } from '../../files/errors.ts';
import { decodeLine, encodeLine, splitLines } from '../../files/lines.ts';
import { isSafeName, safeName } from '../../files/safe-name.ts';
import { CheckpointCorruptError, PawlError } from '../../values/errors.ts';
import type { StoredBody } from '../encoding/stored-body.ts';
import { type Decide, lacking, ofKept, type RecordFacts, unchanged } from '../rules/decision.ts';
import { eraseRun } from '../rules/history.ts';
import type { ThreadChange, ThreadFacts, ThreadRow, TurnQuery, TurnRow } from '../rules/thread-rows.ts';
import { begunTurnsIn, factsOfTurns, queueOf, turnsAmong } from '../rules/turn-lists.ts';
import { saveRecord } from '../rules/writes.ts';
import type { ForkWrite, ListedThread, StoreWrite, ThreadDriver, ThreadPage, ThreadWrite } from '../store-driver.ts';
import { storeError } from './errors.ts';
import { nameRun, type WriteQueues } from './queue.ts';
import type { RunFiles } from './run-files.ts';
import type { StoreFolder } from './store-folder.ts';

/** A thread in its file. */
interface StoredThread {
  readonly row: ThreadRow;
  readonly turns: ReadonlyMap<string, TurnRow>;
  /** Writes to runs that had begun. They are made again, because their process may have died. */
  readonly puts: readonly StoredBody[];
  readonly erases: readonly string[];
}

/** What a run's stored state says to a decision about its thread. */
interface RunKnown {
  readonly hasRecord: boolean;
  readonly isKnown: boolean;
}

/**
 * Keeps the threads of a file store, each in a file. A process that changes one holds its lock, and then those of its runs, one at a
 * time. First records, and what is to be erased, are written down with the thread before they are made. The run that ends comes
 * last: a process that dies before leaves a run that ends again.
 */
export class FileThreads implements ThreadDriver {
  readonly #access: StoreFolder;
  readonly #queues: WriteQueues;
  readonly #files: RunFiles;
  /** The work on each thread in this process. */
  readonly #busy = new Map<string, Promise<void>>();

  constructor(access: StoreFolder, queues: WriteQueues, files: RunFiles) {
    this.#access = access;
    this.#queues = queues;
    this.#files = files;
  }

  write<T>(write: ThreadWrite<T>): Promise<T> {
    return this.#locked(write.threads, async () => {
      const found = await this.#open(write.threads);
      const { end } = write;
      const ended = end && (await this.#queues.add(nameRun(end.runId), (session) => session.endedBy(end)));
      const { value, change } = await this.#decided(write, found, ended);
      if (change) await this.#make(found, change);
      if (end && ended) await this.#queues.addAlone(nameRun(end.runId), (session) => session.perform(end));
      if (change?.writes?.length || change?.erase?.length) await this.#open(write.threads);
      return value;
    });
  }

  fork({ threads, newThreads, decide }: ForkWrite): Promise<void> {
    return this.#locked([...threads, ...newThreads], async () => {
      const source = await this.#open(threads);
      const row = decide(source?.row ?? null, (await this.#open(newThreads))?.row ?? null);
      if (!row || !source) return;
      const isShared = ({ state, order }: TurnRow) => (state === 'ended' || state === 'taken') && order < row.turns;
      const turns = new Map([...source.turns].filter(([, turn]) => isShared(turn)));
      await this.#put({ row, turns, puts: [], erases: [] });
    });
  }

  async turns(threads: readonly string[], query: TurnQuery): Promise<TurnRow[] | null> {
    const found = await this.#reading(() => this.#find(threads));
    return found ? turnsAmong([...found.turns.values()], query) : null;
  }

  /** The file of a thread is found by its id alone: all are read, as for a list. */
  async queued(runId: string): Promise<TurnRow | null> {
    const all = await this.#reading(() => this.#all());
    const turns = all.flatMap((thread) => [...thread.turns.values()]);
    return turns.find((turn) => turn.state === 'queued' && turn.runId === runId) ?? null;
  }

  async list({ callers, after, limit }: ThreadPage): Promise<ListedThread[]> {
    const all = await this.#reading(() => this.#all());
    const isAfter = ({ updatedAt, thread }: ThreadRow) =>
      !after || updatedAt < after.updatedAt || (updatedAt === after.updatedAt && thread < after.thread);
    const wanted = all.filter(({ row }) => isAfter(row) && (!callers || callers.includes(row.caller)));
    const sorted = wanted.sort((a, b) => b.row.updatedAt - a.row.updatedAt || (a.row.thread < b.row.thread ? 1 : -1));
    return sorted.slice(0, limit).map(({ row, turns }) => {
      const rows = [...turns.values()];
      return { ...row, live: rows.find(({ state }) => state === 'live')?.runId, queued: queueOf(rows).count };
    });
  }

  /** Resolves when no work is left. */
  async end(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  /** Decides. The facts of a run are read when the decision asks for them: then it is made again. */
  async #decided<T>(
    { messages, decide }: ThreadWrite<T>,
    found: StoredThread | undefined,
    ended: RecordFacts | undefined,
  ) {
    const runs = new Map<string, RunKnown>();
    const turns = [...(found?.turns.values() ?? [])];
    let missing: string | undefined;
    const runOf = (runId: string): RunKnown => {
      const known = runs.get(runId);
      if (known) return known;
      missing = runId;
      throw new Error('the facts of a run were not read');
    };
    const facts: ThreadFacts = {
      ...factsOfTurns(turns, messages),
      thread: found?.row ?? null,
      hasRecord: (runId) => runOf(runId).hasRecord,
      isKnown: (runId) => runOf(runId).isKnown || begunTurnsIn(turns, runId).length > 0,
    };
    for (;;) {
      missing = undefined;
      try {
        return decide(facts, ended);
      } catch (error) {
        if (missing === undefined) throw error;
        const runId: string = missing;
        runs.set(runId, await this.#queues.add(nameRun(runId), (session) => session.known()));
      }
    }
  }

  async #make(found: StoredThread | undefined, change: ThreadChange<StoreWrite<unknown>>): Promise<void> {
    const { thread, turns = [], remove = [], writes = [], erase = [] } = change;
    // A command that is repeated is in its inbox already: a process that dies here has changed nothing else.
    for (const write of writes) {
      if (write.command) await this.#queues.add(nameRun(write.runId), (session) => session.perform(write));
    }
    if (thread === 'remove') return found && this.#remove(found.row.thread);
    const row = thread ?? found?.row;
    if (!row) return;
    const after = new Map(found?.turns);
    for (const message of remove) after.delete(message);
    for (const turn of turns) after.set(turn.message, turn);
    const puts = writes.flatMap(({ body }) => (body ? [body] : []));
    await this.#put({ row, turns: after, puts, erases: erase.map(({ runId }) => runId) });
    if (puts.length > 0) await this.#putRecords(puts);
  }

  /** Reads a thread, and makes what a process has not finished. */
  async #open(threads: readonly string[]): Promise<StoredThread | undefined> {
    const found = await this.#find(threads);
    if (!found || found.puts.length + found.erases.length === 0) return found;
    await this.#putRecords(found.puts);
    await this.#erase(found);
    const whole = { ...found, puts: [], erases: [] };
    await this.#put(whole);
    return whole;
  }

  async #putRecords(bodies: readonly StoredBody[]): Promise<void> {
    for (const body of bodies) {
      const write = { decide: firstRecord(body), body };
      await this.#queues.add(nameRun(body.runId), (session) => session.perform(write));
    }
  }

  /** Erases the runs that are turns of no thread any more. */
  async #erase({ erases }: StoredThread): Promise<void> {
    if (erases.length === 0) return;
    const used = new Set((await this.#all()).flatMap(({ turns }) => [...turns.values()].map(({ runId }) => runId)));
    for (const runId of erases) {
      if (used.has(runId)) continue;
      const write = { decide: eraseRun(runId, {}) };
      await this.#queues
        .addAlone(nameRun(runId), (session) => session.perform(write))
        // A host may have begun a run of this id: it is not part of the thread.
        .catch((error) => {
          if (!(error instanceof PawlError)) throw error;
        });
    }
  }

  async #find(threads: readonly string[]): Promise<StoredThread | undefined> {
    for (const thread of threads) {
      const bytes = await orAbsent(this.#files.durable.files.readWhole(this.#files.folders.thread(safeName(thread))));
      if (bytes) return threadIn(bytes);
    }
    return undefined;
  }

  async #all(): Promise<StoredThread[]> {
    const { durable, folders } = this.#files;
    const found: StoredThread[] = [];
    for (const name of (await orAbsent(durable.files.names(folders.threads))) ?? []) {
      const bytes = isSafeName(name) && (await orAbsent(durable.files.readWhole(folders.thread(name))));
      if (bytes) found.push(threadIn(bytes));
    }
    return found;
  }

  async #put(stored: StoredThread): Promise<void> {
    const { durable, folders } = this.#files;
    const { files, isSynced, folders: syncs } = durable;
    const isNew = !(await orAbsent(files.stamp(folders.threads)));
    if (isNew) await files.makeFolder(folders.threads);
    const path = folders.thread(safeName(stored.row.thread));
    await writeAtomically(durable, path, (file) => file.write(Buffer.concat(linesOf(stored)), 0));
    if (isNew && isSynced) await syncs.sync(folders.dir);
  }

  async #remove(thread: string): Promise<void> {
    const { durable, folders } = this.#files;
    await durable.files.remove(folders.thread(safeName(thread)));
    if (durable.isSynced) await durable.folders.sync(folders.threads);
  }

  async #reading<T>(read: () => Promise<T>): Promise<T> {
    try {
      await this.#access.check();
      return await read();
    } catch (error) {
      throw storeError(error, this.#files.folders.dir);
    }
  }

  /** Works with the locks of some threads, in one order: no two wait for each other. */
  async #locked<T>(threads: readonly string[], work: () => Promise<T>): Promise<T> {
    // Runs and topics have other locks.
    const names = [...new Set(threads.map((thread) => safeName(`thread ${thread}`)))].sort();
    return this.#withLock(names, work);
  }

  async #withLock<T>([name, ...rest]: readonly string[], work: () => Promise<T>): Promise<T> {
    if (name === undefined) return work();
    const over = Promise.withResolvers<void>();
    const before = this.#busy.get(name);
    this.#busy.set(name, over.promise);
    try {
      await before;
      await this.#access.lock(name);
      try {
        return await this.#withLock(rest, work);
      } finally {
        await this.#access.unlock(name);
      }
    } catch (error) {
      throw storeError(error, this.#files.folders.dir);
    } finally {
      if (this.#busy.get(name) === over.promise) this.#busy.delete(name);
      over.resolve();
    }
  }
}

/** Decides the first record of a turn: a run that has one, or has ended, stays as it is. */
function firstRecord(body: StoredBody): Decide<void> {
  const save = saveRecord(body, { keepsDue: true });
  return (facts) => {
    const need = lacking(facts, ['record'], ofKept);
    if (need) return need;
    return facts.record !== null || (facts.keptEpoch ?? 0) > 0 ? unchanged : save(facts);
  };
}

/** The lines of a thread's file. */
function linesOf({ row, turns, puts, erases }: StoredThread): Buffer[] {
  const line = (kind: string, value: unknown) => encodeLine(kind, [JSON.stringify(value)]);
  return [
    line('thread', row),
    ...[...turns.values()].map((turn) => line('turn', turn)),
    ...puts.map((body) => line('put', body)),
    ...erases.map((runId) => line('erase', runId)),
  ];
}

/** Reads the lines of a thread's file. @throws {CheckpointCorruptError} */
function threadIn(bytes: Buffer): StoredThread {
  let row: ThreadRow | undefined;
  const turns = new Map<string, TurnRow>();
  const puts: StoredBody[] = [];
  const erases: string[] = [];
  for (const raw of splitLines(bytes)) {
    const line = decodeLine(raw.bytes);
    if (!line) throw new CheckpointCorruptError('this thread is damaged: a line of its file has a wrong checksum');
    const value: unknown = JSON.parse(line.fields[0] ?? 'null');
    if (line.kind === 'thread') row = value as ThreadRow;
    else if (line.kind === 'turn') turns.set((value as TurnRow).message, value as TurnRow);
    else if (line.kind === 'put') puts.push(value as StoredBody);
    else if (line.kind === 'erase') erases.push(value as string);
  }
  if (!row) throw new CheckpointCorruptError('this thread is damaged: its file has no thread');
  return { row, turns, puts, erases };
}
