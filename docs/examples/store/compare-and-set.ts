// A store on a server that keeps texts under keys, and replaces one only if nothing has changed it: Redis (a script, or
// WATCH), etcd, a cloud's table. All of a run but its messages is one value, so that one swap is one transaction.
import { randomUUID } from 'node:crypto';
import { type Codec, PawlError } from 'pawl';
import * as kit from 'pawl/stores/kit';

/** What the server can do. */
export interface Keys {
  get(key: string): Promise<string | undefined>;
  /** Replaces the value `before`; undefined = no value. @returns false if the key has another value by now */
  swap(key: string, before: string | undefined, after: string | undefined): Promise<boolean>;
  keys(prefix: string): Promise<string[]>;
}

/** A `Map` in the place of a server. */
export const keysOn = (map: Map<string, string>): Keys => ({
  get: async (key) => map.get(key),
  swap: async (key, before, after) => {
    if (map.get(key) !== before) return false;
    if (after === undefined) map.delete(key);
    else map.set(key, after);
    return true;
  },
  keys: async (prefix) => [...map.keys()].filter((key) => key.startsWith(prefix)),
});

/** @example const store = compareAndSetStore(keysOnRedis(client), { codec: encrypt({ key }) }) */
export const compareAndSetStore = (keys: Keys, options: { readonly codec?: Codec } = {}): kit.StoreOf<CompareAndSet> =>
  kit.storeFrom(new CompareAndSet(keys), options);

/** The value of a run. Each row of messages names the one before it: a step adds a row, and changes none. */
type Value = kit.RunValue & { readonly lastRow?: string | undefined };
type Row = readonly [key: string, text: string];

/** Leases and outcomes go by the wall clock here, so those of all hosts must agree. Redis has `TIME`. */
const times: kit.StoreTimes = { leaseNow: () => Date.now(), now: () => Date.now() };
const keyOf = (runId: string) => `run:${runId}`;

class CompareAndSet implements kit.StoreDriver {
  readonly #keys: Keys;
  readonly #writes = new kit.GroupCommit<kit.StoreWrite>({ perform: (take, runId) => this.#perform(take(), runId) });

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  write<T>(write: kit.StoreWrite<T>, signal?: AbortSignal): Promise<T> {
    return this.#writes.add<T>(write, { key: write.runId, signal });
  }

  /** What waits for a run is decided from one value and swapped in at once: from the start again, if that was changed. */
  async #perform(group: readonly kit.Job<kit.StoreWrite>[], runId: string): Promise<void> {
    for (let tries = 0; tries < 1_000; tries++) {
      const before = await this.#keys.get(keyOf(runId));
      const edit = editOf(before);
      const answers = group.map((job) => kit.settled(job, (write) => make(edit, write)));
      // Nothing names these rows before the swap, and no row is ever changed.
      for (const [key, row] of edit.added) await this.#keys.swap(key, undefined, row);
      const isDone = await this.#keys.swap(keyOf(runId), before, edit.text);
      if (isDone) kit.giveAnswers(answers);
      const useless = isDone ? (await Promise.all(edit.ended.map((last) => this.#rowsFrom(last)))).flat() : edit.added;
      for (const [key, row] of useless) await this.#keys.swap(key, row, undefined);
      if (isDone) return;
    }
    throw new PawlError('STORE_UNAVAILABLE', `run ${runId} is changed too often`);
  }

  async load(runId: string, messages: kit.MessageReader): Promise<kit.StoredTexts | null> {
    await this.#writes.idle(runId);
    for (; ; messages.keep(0)) {
      const text = await this.#keys.get(keyOf(runId));
      const { record, lastRow, lease, damage } = read(text);
      if (damage !== undefined) throw damage;
      if (!record) return null;
      for (const [, row] of (await this.#rowsFrom(lastRow)).reverse()) messages.add(JSON.parse(row)[1]);
      const { start, head, messageCount } = record;
      if (messages.count === messageCount) return { ...start, head, attempts: lease?.attempts };
      if (text === (await this.#keys.get(keyOf(runId))))
        throw new PawlError('CHECKPOINT_CORRUPT', `run ${runId} lacks messages`);
    }
  }

  list = async (page: kit.ListPage) => kit.pageOf(await this.#heads(), page, times.now());

  readonly due: kit.DueDriver = {
    list: async (page) => kit.dueAmong(await this.#heads(), page, times.now()),
    take: async (take) => kit.takeAmong(await this.#heads(), take, { now: times.now(), driver: this }),
    countResting: async () => (await this.#heads()).filter(({ due }) => kit.isResting(due, times.now())).length,
    countRuns: async () => kit.countAmong(await this.#heads(), times.now()),
  };

  readonly deliveries = kit.deliveriesAmong({
    times,
    runs: () => this.#runs(),
    replace: (id, before, after) => this.#keys.swap(keyOf(id), JSON.stringify(before), JSON.stringify(after)),
  });

  readonly outcomes: kit.OutcomeDriver = {
    find: async (runId) => kit.keptIn(await this.#valueOf(runId), times)?.text ?? null,
    forget: async ({ dryRun }) => {
      const isOver = (value: Value) => value.kept && !kit.changedValue(value, { change: {} }, times);
      const over = (await this.#runs()).filter(([, value]) => isOver(value));
      for (const [id, value] of dryRun ? [] : over) await this.#keys.swap(keyOf(id), JSON.stringify(value), undefined);
      return over.length;
    },
  };

  readonly commands: kit.CommandDriver = {
    inbox: async (of) =>
      (await this.#runs()).flatMap(([id, value]) =>
        ('runId' in of ? id === of.runId : value.lease?.owner === of.owner) ? kit.commandsIn(value) : [],
      ),
  };

  #valueOf = async (runId: string) => read(await this.#writes.idle(runId).then(() => this.#keys.get(keyOf(runId))));
  #heads = async () => (await this.#runs()).flatMap(([id, value]) => kit.headsIn(id, value, times));

  async #runs(): Promise<(readonly [runId: string, value: Value])[]> {
    await this.#writes.idle();
    const ids = (await this.#keys.keys(keyOf(''))).map((key) => key.slice(keyOf('').length));
    return Promise.all(ids.map(async (id) => [id, read(await this.#keys.get(keyOf(id)))] as const));
  }

  async #rowsFrom(last: string | undefined): Promise<Row[]> {
    const rows: Row[] = [];
    for (let key = last; key; key = JSON.parse(rows.at(-1)?.[1] ?? '')[0]) {
      const row = await this.#keys.get(key);
      if (row === undefined) break;
      rows.push([key, row]);
    }
    return rows;
  }
}

function read(text: string | undefined): Value {
  try {
    return text === undefined ? {} : JSON.parse(text);
  } catch (cause) {
    return { damage: new PawlError('CHECKPOINT_CORRUPT', 'the value of this run is damaged', { cause }) };
  }
}

/** What a group of writes makes of a value. `ended`: the last rows of records that are replaced or removed. */
const editOf = (text?: string) => ({ text, value: read(text), added: [] as Row[], ended: [] as Value['lastRow'][] });

function make<T>(edit: ReturnType<typeof editOf>, { decide, body }: kit.StoreWrite<T>): T {
  const { value, change } = kit.decideNow(decide, kit.factsOfValue(edit.value, times));
  if (!change) return value;
  const isOver = change.remove || change.record === 'put';
  if (isOver) edit.ended.push(edit.value.lastRow);
  let lastRow = isOver ? undefined : edit.value.lastRow;
  for (const { text } of (change.record && body?.rows) || []) {
    edit.added.push([`row:${randomUUID()}`, JSON.stringify([lastRow, text])]);
    lastRow = edit.added.at(-1)?.[0];
  }
  const after = kit.changedValue(edit.value, { change, body }, times);
  edit.value = { ...after, lastRow };
  edit.text = after && JSON.stringify(edit.value);
  return value;
}
