import { diskFiles, type FileSystem, type OpenFile } from '../../src/files/file-system.ts';

/** The file system of this machine, with some methods of the files that it opens replaced. */
export function alteredFiles(alter: (file: OpenFile) => Partial<OpenFile>): FileSystem {
  const open: FileSystem['open'] = async (path, mode) => {
    const file = await diskFiles.open(path, mode);
    return {
      stamp: () => file.stamp(),
      read: (length, position) => file.read(length, position),
      write: (bytes, position) => file.write(bytes, position),
      sync: (isInPlace) => file.sync(isInPlace),
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
      ...alter(file),
    };
  };
  return { ...diskFiles, open };
}
