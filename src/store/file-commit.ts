import { type Durable, withFile, writeAtomically } from '../files/atomic-write.ts';
import type { FileStamp, OpenFile } from '../files/file-system.ts';
import { readLines } from '../files/lines.ts';
import { type Journal, withoutHead } from './file-journal.ts';
import {
  baseLine,
  extrasLine,
  intactLine,
  type LineKind,
  leaseLine,
  messageLines,
  runLine,
  type State,
  type StoredLease,
  stateLine,
} from './file-lines.ts';

/** What a commit writes. */
export interface Commit {
  readonly runId: string;
  /** Begins a record in the place of the one that is there. */
  readonly base: { readonly meta: string; readonly extras: string | null } | undefined;
  /** One JSON text each. */
  readonly messages: readonly string[];
  readonly lease: StoredLease | undefined;
  readonly isLeaseNew: boolean;
  readonly record: State['record'];
}

/** Lines are collected up to about this many bytes before they are written. */
const BUFFER_SIZE = 2 ** 20;

/** Below this many superseded bytes a journal is never written anew, ... */
const MIN_SUPERSEDED = 2 ** 16;
/** ... and above it when they are more than this share of the others. */
const MAX_SUPERSEDED_SHARE = 0.4;

/** Whether so much of a journal has been replaced since that writing it anew is worth its bytes. */
export function isBloated({ superseded, end }: Journal): boolean {
  return superseded > MIN_SUPERSEDED && superseded > MAX_SUPERSEDED_SHARE * (end - superseded);
}

/** Adds a commit to the end of a journal. Another process may see it before it is synced; nobody is told so yet. */
export async function appendCommit(file: OpenFile, journal: Journal, commit: Commit): Promise<Journal> {
  if (journal.stamp.size > journal.end) await file.truncate(journal.end);
  const writer = new LineWriter(file, journal.end);
  let superseded = journal.superseded + (journal.end - journal.stateAt);
  for (const line of messageLines(commit.messages)) await writer.add(line);
  let { lease } = journal;
  if (commit.isLeaseNew && commit.lease) {
    superseded += lease?.length ?? 0;
    lease = await addLease(writer, commit.lease);
  }
  return addState(writer, { commit, lease, superseded, stamp: journal.stamp });
}

/**
 * Writes a journal anew, in the place of the one that is there.
 * @param old where to take the record from, when the commit does not bring a whole one
 */
export function rewriteJournal(durable: Durable, path: string, { commit, old }: Rewrite): Promise<Journal> {
  return writeAtomically(durable, path, async (file) => {
    const writer = new LineWriter(file, 0);
    if (old && !commit.base) await withFile(durable.files.open(path, 'read'), (from) => copyRecord(from, old, writer));
    else await writer.add(runLine(commit.runId));
    if (commit.base) await writer.add(baseLine(commit.base.meta));
    if (commit.base?.extras != null) await writer.add(extrasLine(commit.base.extras));
    for (const line of messageLines(commit.messages)) await writer.add(line);
    const lease = commit.lease && (await addLease(writer, commit.lease));
    const stamp = await file.stamp();
    return addState(writer, { commit, lease, superseded: 0, stamp });
  });
}

export interface Rewrite {
  readonly commit: Commit;
  readonly old: Journal | undefined;
}

const copied: readonly string[] = ['run', 'base', 'extras', 'messages'] satisfies LineKind[];

/** Each line is checked on the way: damage must not get into a file that looks sound. */
async function copyRecord(from: OpenFile, { end }: Journal, writer: LineWriter): Promise<void> {
  for await (const { lines } of readLines(from)) {
    for (const line of lines) {
      if (line.at < end && copied.includes(intactLine(line).kind)) await writer.add(line.bytes);
    }
  }
}

async function addLease(writer: LineWriter, value: StoredLease): Promise<Journal['lease']> {
  const at = writer.position;
  const line = leaseLine(value);
  await writer.add(line);
  return { value, at, length: line.length };
}

interface Ending {
  readonly commit: Commit;
  readonly lease: Journal['lease'];
  readonly superseded: number;
  readonly stamp: FileStamp;
}

async function addState(writer: LineWriter, { commit, lease, superseded, stamp }: Ending): Promise<Journal> {
  const stateAt = writer.position;
  const state = { leaseAt: lease?.at ?? -1, superseded, record: commit.record };
  await writer.add(stateLine(state));
  await writer.flush();
  const end = writer.position;
  return { ...withoutHead(state, stateAt), stamp: { ...stamp, size: end }, end, lease };
}

/** Collects lines into few large writes. */
class LineWriter {
  readonly #file: OpenFile;
  #lines: Buffer[] = [];
  #size = 0;
  #written: number;

  constructor(file: OpenFile, at: number) {
    this.#file = file;
    this.#written = at;
  }

  /** Where the next line will stand. */
  get position(): number {
    return this.#written + this.#size;
  }

  async add(line: Buffer): Promise<void> {
    this.#lines.push(line);
    this.#size += line.length;
    if (this.#size >= BUFFER_SIZE) await this.flush();
  }

  async flush(): Promise<void> {
    const bytes = this.#lines.length === 1 ? (this.#lines[0] as Buffer) : Buffer.concat(this.#lines);
    await this.#file.write(bytes, this.#written);
    this.#written += bytes.length;
    this.#lines = [];
    this.#size = 0;
  }
}
