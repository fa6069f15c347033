import { Failure } from '../ui/failure.ts';

/** More than any model reads. */
const MAX_BYTES = 16 * 2 ** 20;

/** The prompt `-`: all that comes on stdin, as it comes. @throws {Failure} when it is too much, or no text */
export async function promptFromStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Failure(`stdin has more than ${MAX_BYTES} bytes, which is too much for a prompt`);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw new Failure('what is on stdin is no text in UTF-8; a prompt must be', { cause: error });
  }
}
