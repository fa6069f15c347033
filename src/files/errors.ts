/** The code of a file system error, as in `ENOSPC`; undefined for any other error. */
export function systemCode(error: unknown): string | undefined {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown };
  return typeof code === 'string' && typeof errno === 'number' ? code : undefined;
}

/** Nothing has that name. */
export function isAbsent(error: unknown): boolean {
  return systemCode(error) === 'ENOENT';
}

/** What an attempt to look at something gives, or undefined when it is not there. */
export async function orAbsent<T>(attempt: Promise<T>): Promise<T | undefined> {
  try {
    return await attempt;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
