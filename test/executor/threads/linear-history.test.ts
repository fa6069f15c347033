import fc from 'fast-check';
import {
  createExecutor,
  defineAgent,
  type Executor,
  type MemoryStore,
  type Middleware,
  memoryStore,
  type Thread,
} from 'pawl';
import { callTool, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { wrapStore } from '../../../src/store/read-only.ts';
import { torture } from '../../crash/random.ts';
import { toolOf, until } from '../../fixtures/host.ts';
import { textsIn } from './thread-host.ts';

/** A message of a user, and after how many writes to the store its process dies; absent = it lives. */
interface Step {
  readonly onBusy: 'queue' | 'steer' | 'interrupt';
  readonly diesAfter: number | undefined;
  /** Whether the client sends it twice. */
  readonly isRepeated: boolean;
  readonly tools: number;
  /** Whether the next message waits for the end of this one. */
  readonly isAwaited: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  onBusy: fc.constantFrom('queue', 'queue', 'steer', 'interrupt'),
  diesAfter: fc.option(fc.integer({ min: 0, max: 14 }), { nil: undefined }),
  isRepeated: fc.boolean(),
  tools: fc.integer({ min: 0, max: 2 }),
  isAwaited: fc.boolean(),
});

/** The processes of a host, one after the other, on one store. */
class World {
  /** How far the lease clock is ahead: the leases of dead processes are over. */
  #ahead = 0;
  readonly store: MemoryStore = memoryStore({
    clock: {
      now: () => Date.now(),
      monotonic: () => performance.now() + this.#ahead,
      setTimeout: (...given: Parameters<typeof setTimeout>) => setTimeout(...given),
      clearTimeout: (timer: unknown) => clearTimeout(timer as never),
    } as never,
  });
  /** The model calls of all processes. */
  readonly calls: { readonly runId: string; readonly texts: readonly string[] }[] = [];
  readonly #tools: Map<string, number>;
  #left = Number.POSITIVE_INFINITY;
  #isDead = false;
  executor!: Executor;
  thread!: Thread;

  constructor(tools: Map<string, number>) {
    this.#tools = tools;
    this.boot();
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  dieAfter(writes: number): void {
    this.#left = writes;
  }

  boot(): void {
    this.#ahead += 600_000;
    this.#isDead = false;
    this.#left = Number.POSITIVE_INFINITY;
    const life = { isDead: false };
    const agent = defineAgent({ id: 'echo', name: 'Echo', instructions: 'Echo.', tools: [toolOf('work', 'read')] });
    const middleware: Middleware = {
      model: ({ runId, messages }, next) => {
        this.calls.push({ runId, texts: textsIn(messages) });
        return next();
      },
    };
    const script: ScriptedEntry[] = Array.from(
      { length: 500 },
      (): ScriptedEntry =>
        ({ messages }) => {
          const said = textsIn(messages.filter(({ role }) => role === 'user')).at(-1) ?? '';
          const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user'));
          const done = since.filter(({ role }) => role === 'tool').length;
          return done < (this.#tools.get(said) ?? 0) ? callTool('work', {}) : reply(`re ${said}`);
        },
    );
    this.executor = createExecutor({
      models: { fast: scriptedModel(script) },
      agents: [agent],
      store: this.#mortal(life),
      middleware: [middleware],
      defaults: { controlMs: 3, dueMs: 20 },
      logger: { warn: () => {} },
    });
    this.thread = this.executor.thread('t', { agent });
  }

  /** The store as one process reaches it: the write at which it dies is done, and not answered. */
  #mortal(life: { isDead: boolean }): MemoryStore {
    return wrapStore(this.store, (_, call, does) => async (...given) => {
      if (life.isDead) return new Promise(() => {});
      const answer = await call(...given);
      if (does === 'writes' && --this.#left < 0 && !life.isDead) {
        life.isDead = true;
        this.#isDead = true;
      }
      return life.isDead ? new Promise(() => {}) : answer;
    });
  }
}

/** Sends a message as a client does: until it is acknowledged, also by the next process. */
async function sent(world: World, id: string, onBusy: Step['onBusy']): Promise<void> {
  for (let tries = 0; tries < 5; tries++) {
    let isAcknowledged = false;
    world.thread.send({ id, text: id, onBusy }).then(
      () => {
        isAcknowledged = true;
      },
      () => {},
    );
    await until(() => isAcknowledged || world.isDead, `the answer to ${id}`);
    if (isAcknowledged) return;
    world.boot();
    await world.executor.recover();
  }
  throw new Error('not acknowledged');
}

async function played(steps: readonly Step[]) {
  const ids = steps.map((_, i) => `m${i}`);
  const world = new World(new Map(ids.map((id, i) => [id, steps[i]?.tools ?? 0])));
  await world.executor.recover();
  for (const [i, { onBusy, diesAfter, isRepeated, isAwaited }] of steps.entries()) {
    const id = ids[i] as string;
    if (diesAfter !== undefined) world.dieAfter(diesAfter);
    await sent(world, id, onBusy);
    if (isRepeated) await sent(world, id, onBusy);
    const isOver = async () =>
      world.isDead || ['ended', 'steered'].includes((await world.thread.turn(id))?.state ?? '');
    if (isAwaited) await until(isOver, `the end of ${id}`);
    if (!world.isDead) continue;
    world.boot();
    await world.executor.recover();
  }
  await until(async () => {
    if (world.isDead) {
      world.boot();
      await world.executor.recover();
    }
    const [now] = await world.executor.threads();
    return now?.live === undefined && now?.queued === 0;
  }, 'the end of all turns');
  return { world, ids };
}

describe('a thread whose processes die at any write', () => {
  test('has a linear history: each message once, in its order, and each run saw what was before it (web 9, 10, 11, 13, 35)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 7 }), async (steps) => {
        const { world, ids } = await played(steps);
        const messages = await world.thread.messages({ limit: 1_000 });
        const texts = messages.map(({ message }) => textsIn([message]).join('|'));
        const users = messages.filter(({ message }) => message.role === 'user');
        expect(users.map(({ message }) => textsIn([message])[0]).sort()).toEqual([...ids].sort());
        const queued = ids.filter((_, i) => steps[i]?.onBusy === 'queue');
        const begun = users.flatMap(({ id }) => (queued.includes(id) ? [id] : []));
        expect(begun).toEqual(queued);
        // No call without its result, and no result without its call.
        for (const [i, { message }] of messages.entries()) {
          const calls = message.role === 'assistant' && message.content.some(({ type }) => type === 'tool-call');
          expect(messages[i + 1]?.message.role === 'tool').toBe(calls);
        }
        for (const { runId, texts: seen } of world.calls) {
          const first = messages.findIndex((message) => message.runId === runId);
          const before = texts.slice(0, first + 1).filter((text) => text !== '');
          expect(seen.slice(0, before.length)).toEqual(before);
        }
        expect(messages.map(({ index }) => index)).toEqual(messages.map((_, i) => i));
        await world.executor.shutdown({ drainMs: 100 });
      }),
      { numRuns: Number(process.env.PAWL_PROPERTY_RUNS ?? (torture > 1 ? 600 : 25)) },
    );
  }, 120_000);
});
