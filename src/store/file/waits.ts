import { writeAtomically } from '../../files/atomic-write.ts';
import { orAbsent } from '../../files/errors.ts';
import { decodeLine, encodeLine, splitLines } from '../../files/lines.ts';
import type { RunFiles } from './run-files.ts';

/** For which topic each wait of a run is, by its id. */
export type Waits = ReadonlyMap<string, string>;

/**
 * Reads for which topics a run waits. The file is removed with the run, so a topic that still names a wait of an earlier run
 * finds that it is gone.
 */
export async function readWaits({ durable, folders }: RunFiles, name: string): Promise<Waits> {
  const bytes = await orAbsent(durable.files.readWhole(folders.waits(name)));
  const waits = new Map<string, string>();
  for (const raw of bytes ? splitLines(bytes) : []) {
    const [waitId, topic] = decodeLine(raw.bytes)?.fields ?? [];
    if (waitId !== undefined && topic !== undefined) waits.set(String(JSON.parse(waitId)), topic);
  }
  return waits;
}

/** Writes down for which topics a run waits. Callers hold the run's lock. */
export async function writeWaits({ durable, folders }: RunFiles, name: string, waits: Waits): Promise<void> {
  const path = folders.waits(name);
  if (waits.size === 0) return durable.files.remove(path);
  const lines = [...waits].map(([waitId, topic]) => encodeLine('wait', [JSON.stringify(waitId), topic]));
  await writeAtomically(durable, path, (file) => file.write(Buffer.concat(lines), 0));
}
