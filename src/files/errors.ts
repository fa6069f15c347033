/** Returns the code of a file system error, as in `ENOSPC`; undefined for any other error. */
export function systemCode(error: unknown): string | undefined {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown };
  return typeof code === 'string' && typeof errno === 'number' ? code : undefined;
}

/** Returns whether an error says that there is no such file. */
export function isAbsent(error: unknown): boolean {
  return systemCode(error) === 'ENOENT';
}

/** Waits for a file operation, and returns undefined if there is no such file. */
export async function orAbsent<T>(attempt: Promise<T>): Promise<T | undefined> {
  try {
    return await attempt;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
