import type { Codec } from '../../index.ts';
import { readProperty } from '../../values/error-data.ts';
import { Failure } from '../ui/failure.ts';

/**
 * Returns the codec that an agent module exports; undefined if there is none.
 * @throws {Failure} if the export is not a codec
 */
export function codecOf(exported: unknown, path: string): Codec | undefined {
  if (exported === undefined) return undefined;
  const isCodec = ['seal', 'open'].every((method) => typeof readProperty(exported, method) === 'function');
  if (isCodec) return exported as Codec;
  throw new Failure(
    `the codec of ${path} is not a codec; write \`export const codec = encrypt({ keys, current })\` in it`,
  );
}

interface WithCodec {
  readonly path: string;
  readonly codec: Codec | undefined;
}

/**
 * Returns the codec that all agent modules of a command share, since a store has only one.
 * @throws {Failure} if they export several
 */
export function sharedCodec(modules: Iterable<WithCodec>): Codec | undefined {
  const [first, ...rest] = [...modules].filter(({ codec }) => codec !== undefined);
  const other = rest.find(({ codec }) => codec !== first?.codec);
  if (!other) return first?.codec;
  throw new Failure(
    `${first?.path} and ${other.path} export codecs of their own, and a store has one; let both import it from one module`,
  );
}
