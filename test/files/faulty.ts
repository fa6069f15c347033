import { constants } from 'node:os';
import { diskFiles, type FileSystem, type OpenFile } from '../../src/files/file-system.ts';

/** One call to a file system, or to a file that it has opened. */
export interface Call {
  readonly method: keyof FileSystem | keyof OpenFile;
  readonly path: string;
}

/** What is to happen to a call: nothing, or an error of the system. `half` of what it should write is written then. */
export type Fault = 'ENOSPC' | 'EIO' | 'EROFS' | 'EACCES';

export interface Faults {
  readonly files: FileSystem;
  /** All calls so far. */
  readonly calls: readonly Call[];
  /** How many of them failed on purpose. */
  readonly fired: number;
  /** Decides which calls fail from now on. */
  plan(fault: (call: Call) => Fault | undefined): void;
}

/** A file system some of whose calls fail. A write that fails has written half of its bytes. */
export function faultyFiles(): Faults {
  const calls: Call[] = [];
  let faultOf: (call: Call) => Fault | undefined = () => undefined;
  let fired = 0;
  const enter = (call: Call): Error | undefined => {
    calls.push(call);
    const fault = faultOf(call);
    if (fault === undefined) return undefined;
    fired += 1;
    return systemError(fault, call);
  };
  const files = new Proxy(diskFiles, {
    get: (target, method: keyof FileSystem) => {
      return async (...args: never[]) => {
        const path = String(args[0]);
        const error = enter({ method, path });
        if (error) throw error;
        const result = await (target[method] as (...args: never[]) => Promise<unknown>)(...args);
        return method === 'open' ? faultyFile(result as OpenFile, path, enter) : result;
      };
    },
  });
  return {
    files,
    calls,
    get fired() {
      return fired;
    },
    plan: (fault) => {
      faultOf = fault;
    },
  };
}

function faultyFile(file: OpenFile, path: string, enter: (call: Call) => Error | undefined): OpenFile {
  const call = (method: keyof OpenFile) => enter({ method, path });
  const checked = async <T>(method: keyof OpenFile, work: () => Promise<T>): Promise<T> => {
    const error = call(method);
    if (!error) return work();
    // A file is closed all the same.
    if (method === 'close') await work();
    throw error;
  };
  return {
    read: (length, position) => checked('read', () => file.read(length, position)),
    write: async (bytes, position) => {
      const error = call('write');
      await file.write(error ? bytes.subarray(0, bytes.length >> 1) : bytes, position);
      if (error) throw error;
    },
    sync: () => checked('sync', () => file.sync()),
    close: () => checked('close', () => file.close()),
  };
}

function systemError(code: Fault, { method, path }: Call): Error {
  const errno = -constants.errno[code];
  return Object.assign(new Error(`${code}: on purpose, ${method} '${path}'`), { code, errno, syscall: method, path });
}
