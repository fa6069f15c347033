import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineTool, type RunOutput, type Tool } from 'pawl';
import { fanOut } from 'pawl/fan-out';
import { sqliteStore } from 'pawl/stores/sqlite';
import { callTool, hang, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { hostOf, until } from '../../fixtures/host.ts';

/** The runs of a world. */
export const runIds = ['wait', 'left', 'parked'] as const;
export type RunId = (typeof runIds)[number];

/** What a process that works on a run came to. */
export interface Worked {
  readonly output: RunOutput | undefined;
  /** How often the run paid. */
  readonly paid: number;
  /** The messages of the run, as JSON. */
  readonly messages: string;
}

/**
 * A folder with a store: a run that waits for an approval, one that was left and one that is parked; and with a fan-out that would
 * change two files.
 */
export class World {
  readonly #folder: string;
  readonly store: string;
  readonly root: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.store = join(folder, 'runs.db');
    this.root = join(folder, 'root');
  }

  static async made(): Promise<World> {
    const world = new World(mkdtempSync(join(tmpdir(), 'pawl-studio-kills-')));
    const store = world.open();
    const entry: ScriptedEntry = ({ messages }) =>
      JSON.stringify(messages).includes('run wait') ? callTool('pay', { cents: 5 }) : hang();
    const host = hostOf({
      store,
      tools: [payTool(() => {})],
      script: [entry, entry, entry],
      ...recording,
    });
    for (const runId of runIds) await host.start({ runId, prompt: `run ${runId}`, callerId: 'shop' });
    await until(async () => host.model.calls.length === 3 && (await store.load('wait'))?.waiting !== undefined);
    await host.executor.shutdown();
    const other = hostOf({ store, journal: true });
    await other.executor.park('parked', 'a look first');
    await other.executor.shutdown();
    await store.close();
    await world.#askEditor();
    return world;
  }

  async #askEditor(): Promise<void> {
    mkdirSync(this.root);
    for (const name of ['a.txt', 'b.txt']) writeFileSync(join(this.root, name), `old ${name}\n`);
    const change = (path: string) => [
      callTool('read_file', { path }),
      callTool('write_file', { path, content: `new ${path}\n` }),
    ];
    const editor = scriptedModel([...change('a.txt'), ...change('b.txt'), reply('Done.')]);
    await fanOut({
      prompt: 'Edit.',
      models: { editor },
      root: this.root,
      path: join(this.root, '.pawl', 'ask.json'),
    });
  }

  /** A world of its own, with the same content. */
  copy(): World {
    const world = new World(mkdtempSync(join(tmpdir(), 'pawl-studio-kills-')));
    cpSync(this.#folder, world.#folder, { recursive: true });
    return world;
  }

  open() {
    return sqliteStore({ path: this.store });
  }

  /** The texts of the two files. */
  files(): readonly string[] {
    return ['a.txt', 'b.txt'].map((name) => readFileSync(join(this.root, name), 'utf8').trim());
  }

  /** A process takes up what is due, and works on it to the end. */
  async work(runId: RunId): Promise<Worked> {
    let paid = 0;
    const store = this.open();
    const pay = payTool(() => {
      paid += 1;
    });
    const script = Array.from({ length: 9 }, () => reply('Done.'));
    const host = hostOf({ store, tools: [pay], script, ...recording });
    await host.executor.recover();
    const output = await host.executor.get(runId)?.result;
    const record = (await store.load(runId)) ?? (await store.load(runId, { ended: true }));
    await host.executor.shutdown();
    await store.close();
    return { output, paid, messages: JSON.stringify(record?.messages ?? []) };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const recording = { journal: true, retention: { records: 3_600_000 }, defaults: { waitLingerMs: 1 } } as const;

function payTool(paid: () => void): Tool {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    effect: 'once',
    needsApproval: true,
    execute: () => {
      paid();
      return 'paid';
    },
  }) as unknown as Tool;
}
