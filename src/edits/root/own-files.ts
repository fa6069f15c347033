import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { plainName } from './paths.ts';

/** Whether a path relative to the root is kept from models. */
export type IsOwn = (path: string) => boolean;

/**
 * The checkpoint file of a fan-out may lie among the files that its models work on: then it, its lock, unfinished writes of it
 * and the records beside it are not theirs to see or to change. They hold what the others say.
 * @param root without links @param checkpoint an absolute path
 */
export async function ownFilesIn(root: string, checkpoint: string): Promise<IsOwn> {
  const given = dirname(checkpoint);
  // Of one outside the root this begins with .., as no path of a model does.
  const folder = relative(root, await realpath(given).catch(() => given));
  const own = plainPath(join(folder, basename(checkpoint)).replaceAll(sep, '/'));
  return (path) => {
    const plain = plainPath(path);
    return plain.startsWith(own) && beside.test(plain.slice(own.length));
  };
}

/** What follows the name of the checkpoint file: nothing, or what makes it the name of one of those beside it. */
const beside = /^($|[/:]|\.(lock|runs)($|[./:])|\.\d+\.[0-9a-f]{8}\.tmp)/;

/** Some file systems take other spellings for the same. */
function plainPath(path: string): string {
  const names = path.split('/').map((name) => withoutEnding(plainName(name)));
  return names.join('/');
}

/** A name without the dots and spaces at its end. */
function withoutEnding(name: string): string {
  let end = name.length;
  while (name[end - 1] === '.' || name[end - 1] === ' ') end -= 1;
  return name.slice(0, end);
}
