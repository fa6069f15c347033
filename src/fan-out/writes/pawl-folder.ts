import { lstat, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../files/errors.ts';
import { WriteOutsideRootError } from '../errors.ts';

/**
 * The folder `.pawl` of a project, made when it is not there, with a `.gitignore`: answers and undos are nobody's to commit.
 * @returns its path
 * @throws {WriteOutsideRootError} when it is a link, or no folder
 */
export async function pawlFolder(root: string): Promise<string> {
  const path = join(root, '.pawl');
  try {
    await mkdir(path);
    await writeFile(join(path, '.gitignore'), '*\n', { flag: 'wx' });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
    if (!(await lstat(path)).isDirectory())
      throw new WriteOutsideRootError(`${path} is a link or a file; Pawl needs a folder there`);
  }
  return path;
}
