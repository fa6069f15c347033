import { type CheckpointStore, memoryStore, type RunCheckpoint } from 'pawl';
import { plainStore } from '../../fixtures/watched-store.ts';

/** A store as a host writes its first one: four methods, and records as JSON text under their run ids. */
export function honestStore(records: Map<string, string>): CheckpointStore {
  return {
    save: async (record) => void records.set(record.meta.runId, JSON.stringify(record)),
    load: async (runId) => JSON.parse(records.get(runId) ?? 'null'),
    delete: async (runId) => void records.delete(runId),
    listInterrupted: async () =>
      [...records.values()]
        .map((text) => JSON.parse(text) as RunCheckpoint)
        .map(({ meta, iteration, updatedAt, completedPhases }) => ({
          ...{ runId: meta.runId, meta, iteration, updatedAt },
          completedPhases: completedPhases.map(({ name }) => name),
        })),
  };
}

/** Ways to lie, each told to every process that opens the store: what it acknowledges is not what the next one finds. */
export const liars: { readonly [name: string]: () => () => CheckpointStore } = {
  'drops every third write': () => {
    const records = new Map<string, string>();
    const honest = honestStore(records);
    let saves = 0;
    return () => ({ ...honest, save: async (record) => (++saves % 3 === 0 ? undefined : honest.save(record)) });
  },
  'lets two writes land in the wrong order': () => {
    const records = new Map<string, string>();
    return () => {
      const honest = honestStore(records);
      let held: RunCheckpoint | undefined;
      return {
        ...honest,
        save: async (record) => {
          if (record.revision % 3 === 0) held = record;
          else await honest.save(record);
          if (held && held.revision < record.revision) await honest.save(held);
          if (record !== held) held = undefined;
        },
      };
    };
  },
  'reads what was there before the last write': () => {
    const [records, older] = [new Map<string, string>(), new Map<string, string>()];
    const honest = honestStore(records);
    return () => ({
      ...honest,
      save: async (record) => {
        older.set(record.meta.runId, records.get(record.meta.runId) ?? 'null');
        await honest.save(record);
      },
      load: async (runId) => JSON.parse((records.has(runId) && older.get(runId)) || 'null'),
    });
  },
  'loses with the process what it acknowledged last': () => {
    const records = new Map<string, string>();
    return () => {
      const cache = new Map(records);
      const honest = honestStore(cache);
      return {
        ...honest,
        save: async (record) => {
          // What was written before this reaches the storage now, and this with the next one.
          const text = cache.get(record.meta.runId);
          if (text) records.set(record.meta.runId, text);
          await honest.save(record);
        },
        delete: async (runId) => {
          await honest.delete(runId);
          records.delete(runId);
        },
      };
    };
  },
  'tears the record it is writing': () => {
    const records = new Map<string, string>();
    return () => {
      const torn = new Map([...records].map(([runId, text]) => [runId, text.slice(0, -20)] as const));
      const honest = honestStore(records);
      return {
        ...honest,
        load: async (runId) => JSON.parse(torn.get(runId) ?? records.get(runId) ?? 'null'),
        delete: async (runId) => {
          torn.delete(runId);
          await honest.delete(runId);
        },
      };
    };
  },
  'forgets the calls that are under way': () => {
    const honest = honestStore(new Map());
    return () => ({ ...honest, save: async ({ openStep: _, ...record }) => honest.save(record) });
  },
  'keeps what was deleted': () => {
    const honest = honestStore(new Map());
    return () => ({ ...honest, delete: async () => {} });
  },
  'gives everybody the claim, and looks at none': () => {
    const storage = memoryStore();
    return () => ({
      ...plainStore(storage),
      save: (record) => storage.save(record),
      delete: (runId) => storage.delete(runId),
      claim: async (runId: string, owner: string) => ({ runId, owner, epoch: 1, attempts: 1 }),
      renew: async (claim: unknown) => claim,
      release: async () => {},
    });
  },
  'is another one each time': () => () => plainStore(memoryStore()),
};
