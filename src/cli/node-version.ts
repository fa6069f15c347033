const NEEDED = [22, 18] as const;

/**
 * Returns the message for a version of Node that is too old, in one line; undefined if it is new enough.
 * @example nodeComplaint('20.11.1') // 'pawl needs Node 22.18 or newer, and this is 20.11.1: …'
 */
export function nodeComplaint(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) return undefined;
  return `pawl needs Node ${NEEDED.join('.')} or newer, and this is ${version}: install one (https://nodejs.org) and put it first on the PATH`;
}
