import { resolve } from 'node:path';
import type { Codec } from '../../index.ts';
import { Failure } from '../ui/failure.ts';
import { loadModule } from './agent-module.ts';
import { codecOf } from './codec-export.ts';

/**
 * The codec of the module that PAWL_CODEC names, its export `codec` or its default one: for commands that have no agent module.
 * @throws {Failure} that says what is wrong with it
 */
export async function codecFromEnvironment(): Promise<Codec | undefined> {
  const file = process.env.PAWL_CODEC;
  if (!file) return undefined;
  const path = resolve(file);
  const exported = await loadModule(path, 'codec module');
  const codec = codecOf(exported.codec ?? exported.default, path);
  if (codec) return codec;
  throw new Failure(
    `PAWL_CODEC names ${path}, which exports no codec; write \`export const codec = encrypt({ keys, current })\` in it`,
  );
}
