import type { AskProgress } from './ask-progress.ts';

const forward = ['\t', '\u001b[C', '\u001b[B'];
const back = ['\u001b[Z', '\u001b[D', '\u001b[A'];
const CTRL_C = '\u0003';

/**
 * Lets the keys of a terminal choose whose text is shown. To see single keys we have to take the terminal's own meaning of
 * Ctrl-C from it, and give it back.
 */
export function followKeys(progress: Pick<AskProgress, 'moveFocus'>): Disposable {
  const { stdin } = process;
  if (!stdin.isTTY || !process.stderr.isTTY) return { [Symbol.dispose]: () => {} };
  const onData = (data: Buffer) => {
    const key = data.toString();
    if (forward.includes(key)) progress.moveFocus(1);
    else if (back.includes(key)) progress.moveFocus(-1);
    else if (key.includes(CTRL_C)) process.kill(process.pid, 'SIGINT');
  };
  stdin.setRawMode(true);
  stdin.on('data', onData);
  return {
    [Symbol.dispose]: () => {
      stdin.off('data', onData);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}
