import { writeAtomically } from '../../files/atomic-write.ts';
import { orAbsent } from '../../files/errors.ts';
import { decodeLine, encodeLine, splitLines } from '../../files/lines.ts';
import { isSafeName, safeName } from '../../files/safe-name.ts';
import { hasCode } from '../../values/error-data.ts';
import type { CommandToSend } from '../commands.ts';
import { GroupCommit, giveAnswers, type Job, type Settled, settledLater } from '../group-commit.ts';
import { sendCommand } from '../rules/inbox.ts';
import {
  type ExpectWrite,
  emptyTopic,
  isEmptyTopic,
  isNewSignal,
  knownIn,
  type SignalWrite,
  type StoredSignal,
  type TopicDriver,
  type TopicValue,
  type TopicWait,
  unexpired,
  withDelivered,
  withKept,
  withoutWait,
  withWait,
} from '../topics.ts';
import { storeError } from './errors.ts';
import { nameRun, type WriteQueues } from './queue.ts';
import type { RunFiles } from './run-files.ts';
import type { StoreFolder } from './store-folder.ts';
import { readWaits } from './waits.ts';

/** A topic in its file. */
interface StoredTopic extends TopicValue {
  /** A delivery that had begun: the command, as it is sent. It is made again, because its process may have died. */
  readonly pending?:
    | { readonly signal: StoredSignal; readonly command: CommandToSend; readonly waitId: string }
    | undefined;
}

type Pending = NonNullable<StoredTopic['pending']>;

/** A topic while its lock is held. */
interface OpenTopic {
  readonly topic: string;
  value: TopicValue;
  /** The file differs. */
  isChanged: boolean;
}

type Work = (open: OpenTopic) => Promise<unknown>;

/**
 * Keeps the topics of a file store, each in a file. A process that changes one holds its lock, and then that of the run. A
 * delivery is written down before it is made, so that a process that dies loses none.
 */
export class FileTopics implements TopicDriver {
  readonly #access: StoreFolder;
  readonly #queues: WriteQueues;
  readonly #files: RunFiles;
  readonly #works = new GroupCommit<Work>({ perform: (take, topic) => this.#perform(take(), topic) });

  constructor(access: StoreFolder, queues: WriteQueues, files: RunFiles) {
    this.#access = access;
    this.#queues = queues;
    this.#files = files;
  }

  async expect(write: ExpectWrite): Promise<void> {
    const { topic } = write;
    if (topic === null) await this.#hasGot(write);
    else await this.#works.add((open) => this.#expect(open, write), { key: topic });
  }

  async signal(signal: SignalWrite): Promise<string | undefined> {
    return this.#works.add((open) => this.#signal(open, signal), { key: signal.topic });
  }

  /** Removes expired signals. */
  async forgetExpired(): Promise<void> {
    const { durable, folders } = this.#files;
    for (const topic of (await orAbsent(durable.files.names(folders.topics))) ?? []) {
      if (isSafeName(topic)) await this.#works.add(async () => {}, { key: topic });
    }
  }

  /** Resolves when no work is left. */
  end(): Promise<void> {
    return this.#works.end();
  }

  async #expect(open: OpenTopic, write: ExpectWrite): Promise<void> {
    const { claim, waitId, commandOf } = write;
    if (await this.#hasGot(write)) return;
    for (const signal of open.value.kept) {
      const command = commandOf(signal);
      if (command) return void (await this.#deliver(open, { signal, command, waitId }));
      change(open, { ...open.value, kept: open.value.kept.filter((kept) => kept !== signal) });
    }
    await this.#queues.add(nameRun(claim.runId), async (session) =>
      session.putWaits(new Map([...(await session.waitsOf(claim)), [waitId, open.topic]])),
    );
    change(open, withWait(open.value, { runId: claim.runId, waitId }));
  }

  /** Checks the claim, and withdraws the wait from any other topic. @returns whether its signal waits in the inbox */
  #hasGot({ claim, waitId, topic, commandId }: ExpectWrite): Promise<boolean> {
    return this.#queues.add(nameRun(claim.runId), async (session) => {
      const waits = await session.waitsOf(claim);
      if (waits.has(waitId) && waits.get(waitId) !== topic) await session.putWaits(without(waits, waitId));
      return session.hasCommand(commandId);
    });
  }

  async #signal(open: OpenTopic, signal: SignalWrite): Promise<string | undefined> {
    const known = knownIn(open.value, signal);
    if (!isNewSignal(signal, known)) return known?.to ?? undefined;
    for (const wait of open.value.waits) {
      const delivery = { signal, command: signal.commandFor(wait), waitId: wait.waitId };
      if ((await this.#isOpen(open, wait)) && (await this.#deliver(open, delivery))) return wait.runId;
      change(open, withoutWait(open.value, wait));
    }
    change(open, withKept(open.value, signal));
    return undefined;
  }

  async #perform(jobs: readonly Job<Work>[], topic: string): Promise<void> {
    // Runs have other locks.
    const lock = safeName(`topic ${topic}`);
    try {
      await this.#access.lock(lock);
      try {
        const open = await this.#open(topic);
        const answers: Settled<Work>[] = [];
        for (const job of jobs) answers.push(await settledLater(job, (work) => work(open)));
        if (open.isChanged) await this.#put(topic, open.value);
        giveAnswers(answers);
      } finally {
        await this.#access.unlock(lock);
      }
    } catch (error) {
      throw storeError(error, this.#files.folders.dir);
    }
  }

  /** Reads a topic, and makes a delivery again that a process has not finished. */
  async #open(topic: string): Promise<OpenTopic> {
    const { durable, folders, now } = this.#files;
    const bytes = await orAbsent(durable.files.readWhole(folders.topic(topic)));
    const { pending, ...stored } = topicIn(bytes);
    const value = unexpired(stored, now());
    const isExpired = value.kept.length + value.delivered.length < stored.kept.length + stored.delivered.length;
    const open = { topic, value, isChanged: isExpired };
    if (!pending) return open;
    const { signal, command, waitId } = pending;
    if (!(await this.#finish(open, pending))) {
      change(open, withKept(withoutWait(open.value, { runId: command.runId, waitId }), signal));
    }
    return open;
  }

  /** Delivers a signal. @returns false if the run has no record any more @throws {UndeliveredError} */
  async #deliver(open: OpenTopic, pending: Pending): Promise<boolean> {
    await this.#put(open.topic, { ...open.value, pending });
    open.isChanged = true;
    return this.#finish(open, pending);
  }

  async #finish(open: OpenTopic, { signal, command, waitId }: Pending): Promise<boolean> {
    const { runId } = command;
    const run = nameRun(runId);
    try {
      await this.#queues.add(run, (session) => session.perform({ decide: sendCommand(command, { keepsDue: true }) }));
    } catch (error) {
      if (hasCode(error, 'CHECKPOINT_MISSING')) return false;
      throw error;
    }
    const waits = await readWaits(this.#files, run.name);
    if (waits.has(waitId)) await this.#queues.add(run, (session) => session.putWaits(without(waits, waitId)));
    change(open, withDelivered(open.value, signal, { runId, waitId }));
    return true;
  }

  /** Returns whether a run still has a wait for a topic. */
  async #isOpen({ topic }: OpenTopic, { runId, waitId }: TopicWait): Promise<boolean> {
    const { name } = nameRun(runId);
    await this.#queues.idle(name);
    return (await readWaits(this.#files, name)).get(waitId) === topic;
  }

  async #put(topic: string, value: StoredTopic): Promise<void> {
    const { durable, folders } = this.#files;
    const path = folders.topic(topic);
    if (isEmptyTopic(value) && !value.pending) return durable.files.remove(path);
    await durable.files.makeFolder(folders.topics);
    await writeAtomically(durable, path, (file) => file.write(Buffer.concat(linesOf(value)), 0));
  }
}

function change(open: OpenTopic, value: TopicValue): void {
  open.value = value;
  open.isChanged = true;
}

function without(waits: ReadonlyMap<string, string>, waitId: string): ReadonlyMap<string, string> {
  return new Map([...waits].filter(([id]) => id !== waitId));
}

/** The lines of a topic's file. Ids are JSON: they may hold what separates fields. */
function linesOf({ waits, kept, delivered, pending }: StoredTopic): Buffer[] {
  const json = JSON.stringify;
  return [
    ...waits.map(({ runId, waitId }) => encodeLine('wait', [json(runId), json(waitId)])),
    ...kept.map(({ key, untilMs, text }) => encodeLine('kept', [key, untilMs, text])),
    ...delivered.map(({ key, untilMs, to }) => encodeLine('delivered', [key, untilMs, json(to)])),
    ...(pending ? [pendingLine(pending)] : []),
  ];
}

function pendingLine({ signal, command, waitId }: NonNullable<StoredTopic['pending']>): Buffer {
  const { key, untilMs, text } = signal;
  const { runId, id, kind } = command;
  const json = JSON.stringify;
  return encodeLine('pending', [key, untilMs, json(runId), json(id), kind, json(waitId), command.text, text]);
}

/** Reads the lines of a topic's file. A damaged one counts as never written. */
function topicIn(bytes: Buffer | undefined): StoredTopic {
  const waits: TopicWait[] = [];
  const kept: StoredSignal[] = [];
  const delivered: TopicValue['delivered'][number][] = [];
  let pending: StoredTopic['pending'];
  for (const raw of bytes ? splitLines(bytes) : []) {
    const { kind, fields } = decodeLine(raw.bytes) ?? { kind: '', fields: [] };
    const [a = '', b = '', c = ''] = fields;
    if (kind === 'wait') waits.push({ runId: JSON.parse(a), waitId: JSON.parse(b) });
    else if (kind === 'kept') kept.push({ key: a, untilMs: Number(b), text: c });
    else if (kind === 'delivered') delivered.push({ key: a, untilMs: Number(b), to: JSON.parse(c) });
    else if (kind === 'pending') pending = pendingIn(fields);
  }
  return { ...emptyTopic, waits, kept, delivered, pending };
}

function pendingIn(fields: readonly string[]): StoredTopic['pending'] {
  const [key = '', untilMs, runId = '', id = '', kind, waitId = '', command = '', text = ''] = fields;
  const toSend = { runId: JSON.parse(runId), id: JSON.parse(id), kind: kind as CommandToSend['kind'], text: command };
  return { signal: { key, untilMs: Number(untilMs), text }, command: toSend, waitId: JSON.parse(waitId) };
}
