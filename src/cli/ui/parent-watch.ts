import type { Output } from './output.ts';

/** How often the parent is looked at, ms: a command without one ends within a second. */
const LOOK_MS = 500;
const npmVariables = ['npm_command', 'npm_lifecycle_event', 'npm_execpath'] as const;

/**
 * Watches the parent of a command that npm or npx has started: npm ends at a SIGTERM without passing it on, and its command would
 * live on without a supervisor. When the parent has gone, this process acts as on a SIGTERM. `PAWL_ORPHAN=keep` turns that off.
 */
export function watchParent(output: Output): Disposable {
  const { env, ppid: parent } = process;
  const isOfNpm = npmVariables.some((name) => env[name] !== undefined);
  if (!isOfNpm || env.PAWL_ORPHAN === 'keep') return { [Symbol.dispose]: () => {} };
  output.say('pawl: npm started this command, and passes no signals on: use node_modules/.bin/pawl');
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    output.say('pawl: the process that started this one has gone; stopping as on SIGTERM');
    process.emit('SIGTERM', 'SIGTERM');
  }, LOOK_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
