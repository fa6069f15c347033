const HIDE = '\u001b[?25l';
const SHOW = '\u001b[?25h';
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * Hides the cursor of a terminal until it is given back, or until the process ends: a shell without a cursor is what
 * everybody remembers of a program. Of signals that nobody else listens to the process dies as it would have without us.
 */
export function hideCursor(terminal: NodeJS.WritableStream): Disposable {
  const giveBack = () => {
    process.off('exit', giveBack);
    for (const signal of signals) process.off(signal, onSignal);
    terminal.write(SHOW);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    if (process.listenerCount(signal) > 1) return;
    giveBack();
    // At an exit Node does that; at a death by a signal that was listened to nobody does.
    if (process.stdin.isRaw) process.stdin.setRawMode(false);
    process.kill(process.pid, signal);
  };
  process.on('exit', giveBack);
  for (const signal of signals) process.on(signal, onSignal);
  terminal.write(HIDE);
  return { [Symbol.dispose]: giveBack };
}
