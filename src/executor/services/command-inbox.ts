import type { Warn } from '../../log/log.ts';
import { MAX_COMMANDS, type SentCommand } from '../../run/command.ts';
import type { CheckpointStore, Claim, CommandStore } from '../../store/port.ts';
import type { Clock } from '../../values/clock.ts';
import { withDeadline } from '../../values/deadline.ts';
import { hasCode, readProperty } from '../../values/error-data.ts';

/** A live run that commands may be waiting for. */
export interface CommandTarget {
  readonly runId: string;
  readonly claim: Claim | undefined;
  /** Commands that its progress holds: the store may still hold them too, or their senders may send them again. */
  readonly commands: readonly string[];
  /** @returns whether the command is recorded and may leave the inbox; rejects if the run did not accept it */
  obey(sent: SentCommand): Promise<boolean>;
  /** These commands wait no longer, and their senders do not send them again. */
  forget(ids: readonly string[]): void;
}

interface Surroundings {
  readonly clock: Clock;
  readonly warn: Warn;
  readonly owner: string;
  /** How often to look, ms. */
  readonly everyMs: number;
  /** How long one look may take, ms. */
  readonly ms: number;
}

/**
 * How long a run remembers a command that waits no longer, ms: its sender may have missed the answer and send it again. No
 * store repeats a send for half as long.
 */
const REMEMBERED_MS = 60_000;

/** Most remembered commands: the head of the record holds their ids. */
const MAX_REMEMBERED = 100;

/**
 * Delivers commands of other processes to the live runs of this one, through the store. One look asks for all of them. A
 * command is acknowledged when the run has recorded it. Until then it stays in the store, and the process that continues the
 * run finds it again.
 */
export class CommandInbox {
  readonly #store: CommandStore | undefined;
  readonly #around: Surroundings;
  readonly #members = new Map<string, CommandTarget>();
  /** Commands on their way into a run, by `runId` and id; each promise resolves when the run has answered. */
  readonly #underWay = new Map<string, Promise<void>>();
  /** The highest number of a command that each run has seen. */
  readonly #readUpTo = new Map<string, number>();
  /** Acknowledged since the last look began, which may still have seen them. */
  readonly #acknowledged = new Set<string>();
  /** When the commands of a run stopped waiting, monotonic ms; the oldest first. */
  readonly #goneSince = new Map<CommandTarget, Map<string, number>>();
  #looking: Promise<boolean> | undefined;
  #timer: unknown;
  #isFailing = false;

  constructor(store: CheckpointStore | undefined, around: Surroundings) {
    this.#store = store?.commands;
    this.#around = around;
  }

  /** Delivers to this run until it leaves. */
  enter(member: CommandTarget): void {
    if (!this.#store || !member.claim) return;
    this.#members.set(member.runId, member);
    this.#arm();
  }

  /** The run takes no more commands: it is over. */
  leave(member: CommandTarget): void {
    this.#goneSince.delete(member);
    this.#readUpTo.delete(member.runId);
    if (this.#members.get(member.runId) === member) this.#members.delete(member.runId);
    if (this.#members.size > 0) return;
    this.#around.clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Looks now. Callers during a look share the next one. Never rejects. @returns whether the commands could be read */
  async look(): Promise<boolean> {
    if (!this.#store || this.#members.size === 0) return true;
    if (this.#looking) await this.#looking;
    this.#looking ??= this.#lookOnce(this.#store).finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Whether the last look could not read the store. */
  get hasFailed(): boolean {
    return this.#isFailing;
  }

  /** Whether a command of this run is on its way into it. */
  isDelivering(runId: string): boolean {
    return [...this.#underWay.keys()].some((key) => key.startsWith(`${runId}\n`));
  }

  /** The highest number of the commands that this run has seen here; 0 = none. */
  readUpTo(runId: string): number {
    return this.#readUpTo.get(runId) ?? 0;
  }

  /** Waits until the run has answered every command that it was given; a command may wait for a host's check. Ends. */
  async settleDelivered(runId: string): Promise<void> {
    const { clock, ms } = this.#around;
    const given = [...this.#underWay].flatMap(([key, answered]) => (key.startsWith(`${runId}\n`) ? [answered] : []));
    if (given.length === 0) return;
    await withDeadline(Promise.all(given), { ms, clock, what: 'the commands of a run' }).catch(() => {});
  }

  /**
   * Looks for a run that is continued from its record. The wait is bounded by the usual delay of a command: a later answer is
   * delivered when it arrives.
   */
  async lookFirst(): Promise<void> {
    const { clock, everyMs, ms } = this.#around;
    await withDeadline(this.look(), { ms: Math.min(everyMs, ms), clock, what: 'store.commands.inbox' }).catch(() => {});
  }

  #arm(): void {
    const { clock, everyMs } = this.#around;
    if (this.#members.size === 0) return;
    this.#timer ??= clock.setTimeout(() => {
      this.#timer = undefined;
      void this.look().then(() => this.#arm());
    }, everyMs);
  }

  async #lookOnce(store: CommandStore): Promise<boolean> {
    const { owner, warn } = this.#around;
    const members = [...this.#members.values()];
    this.#acknowledged.clear();
    try {
      const sent = await store.inbox({ owner });
      this.#isFailing = false;
      if (sent.length >= MAX_COMMANDS) {
        await this.#lookAtEach(store, members);
        return true;
      }
      const byRun = Map.groupBy(sent, ({ runId }) => runId);
      for (const member of members) this.#deliver(store, member, byRun.get(member.runId) ?? []);
      return true;
    } catch (error) {
      if (!this.#isFailing) warn('command.read.failed', { error });
      this.#isFailing = true;
      return false;
    }
  }

  /** The commands of one run may fill a whole answer: then the store is asked about each run by itself. */
  async #lookAtEach(store: CommandStore, members: readonly CommandTarget[]): Promise<void> {
    const failed: unknown[] = [];
    for (const member of members) {
      if (this.#members.get(member.runId) !== member) continue;
      const { runId } = member;
      const deliver = (sent: readonly SentCommand[]) => this.#deliver(store, member, sent);
      await store
        .inbox({ runId })
        .then(deliver)
        .catch((error: unknown) => failed.push(error));
    }
    if (failed.length > 0) throw failed[0];
  }

  /** Delivers the stored commands of a run that it does not have yet. @param sent all commands that wait for the run */
  #deliver(store: CommandStore, member: CommandTarget, sent: readonly SentCommand[]): void {
    // A run that has left may not be recorded here: no later call would remove it.
    if (this.#members.get(member.runId) !== member) return;
    const { commands } = member;
    if (sent.length === 0 && commands.length === 0) return;
    const isNews = ({ command }: SentCommand) => {
      const key = keyOf(member, command.id);
      return !this.#underWay.has(key) && !this.#acknowledged.has(key);
    };
    // All signals to one wait have one id: the run knows whether it has had this one.
    const known = new Set(commands);
    const isKnown = ({ command }: SentCommand) => known.has(command.id) && !isSignal(command);
    const news = sent.filter(isNews);
    const recorded = news.filter(isKnown).map(({ command }) => command.id);
    this.#note(member, sent);
    if (recorded.length > 0) void this.#acknowledge(store, member, recorded);
    const waiting = new Set(sent.map(({ command }) => command.id));
    const gone = commands.filter((id) => !waiting.has(id) && !this.#underWay.has(keyOf(member, id)));
    this.#forgetOld(member, gone);
    for (const each of news) {
      if (!isKnown(each)) this.#underWay.set(keyOf(member, each.command.id), this.#hand(store, member, each));
    }
  }

  #forgetOld(member: CommandTarget, gone: readonly string[]): void {
    const now = this.#around.clock.monotonic();
    const before = this.#goneSince.get(member);
    const since = new Map(gone.map((id) => [id, before?.get(id) ?? now]));
    this.#goneSince.set(member, since);
    const old = gone.filter(
      (id, i) => gone.length - i > MAX_REMEMBERED || now - (since.get(id) ?? now) >= REMEMBERED_MS,
    );
    for (const id of old) since.delete(id);
    if (old.length > 0) member.forget(old);
  }

  #note({ runId }: CommandTarget, sent: readonly SentCommand[]): void {
    const highest = sent.reduce((most, { seq = 0 }) => Math.max(most, seq), this.readUpTo(runId));
    if (highest > 0) this.#readUpTo.set(runId, highest);
  }

  async #hand(store: CommandStore, member: CommandTarget, sent: SentCommand): Promise<void> {
    const { id } = sent.command;
    // Its place among the commands under way is taken first.
    await Promise.resolve();
    try {
      if (await member.obey(sent)) await this.#acknowledge(store, member, [id]);
    } catch {
      // The command stays in the inbox, until the run's queue has room or another process continues the run.
    } finally {
      this.#underWay.delete(keyOf(member, id));
    }
  }

  async #acknowledge(store: CommandStore, member: CommandTarget, ids: readonly string[]): Promise<void> {
    const { claim, runId } = member;
    const { warn } = this.#around;
    if (!claim) return;
    try {
      await store.acknowledge(claim, ids);
      for (const id of ids) this.#acknowledged.add(keyOf(member, id));
    } catch (error) {
      if (!hasCode(error, 'LEASE_LOST')) {
        warn('command.confirm.failed', { runId, error });
      }
    }
  }
}

function isSignal(command: SentCommand['command']): boolean {
  return command.kind === 'answer' && readProperty(command.answer, 'how') === 'signal';
}

function keyOf({ runId }: CommandTarget, id: string): string {
  return `${runId}\n${id}`;
}
