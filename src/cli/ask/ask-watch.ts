import type { FanOutResult, ModelResponse, ResponseSnapshot } from '../../fan-out/index.ts';
import type { RunEvent } from '../../index.ts';
import type { CommandContext } from '../command.ts';
import { type AskProgress, askProgressFor } from './ask-progress.ts';
import { AskView } from './model-view.ts';

/** The models and their prompt. */
interface Asking {
  readonly prompt: string;
  readonly ids: readonly string[];
  readonly path: string;
  /** The turns of an earlier process. */
  readonly before: readonly ResponseSnapshot[];
}

/** Follows a fan-out: a board, or JSON lines. */
interface AskWatch {
  heed(id: string, event: RunEvent): void;
  turned(snapshot: ResponseSnapshot): void;
  ended(response: ModelResponse): void;
  leaving(): void;
  end(result: FanOutResult): void;
  /** Called on every way out. */
  close(): void;
}

/** Returns the observer of a fan-out for `pawl ask`, which shows a board with keys, or prints JSON lines with `--json`. */
export function watchFor(context: CommandContext, asking: Asking): AskWatch {
  return context.args.json ? jsonWatch(context, asking) : shownWatch(context, asking);
}

function shownWatch({ output }: CommandContext, { prompt, ids, before }: Asking): AskWatch {
  const snapshotOf = (id: string) => before.find(({ modelId }) => modelId === id);
  const views = new Map(ids.map((id) => [id, new AskView(id, snapshotOf(id))]));
  const progress = askProgressFor(output, { prompt, models: ids });
  const keys = followKeys(progress);
  const show = (id: string, change: (view: AskView) => ReturnType<AskView['leaving']>) => {
    const view = views.get(id);
    if (view) progress.update(change(view));
  };
  const isOver = new Set<string>();
  return {
    // The last deltas of a run may arrive after its answer.
    heed: (id, event) => isOver.has(id) || show(id, (view) => view.heed(event)),
    turned: (snapshot) => show(snapshot.modelId, (view) => view.turned(snapshot)),
    ended: (response) => {
      isOver.add(response.modelId);
      show(response.modelId, (view) => view.ended(response));
    },
    leaving: () => {
      for (const id of ids) if (!isOver.has(id)) show(id, (view) => view.leaving());
    },
    end: () => progress.end(),
    close: () => {
      keys[Symbol.dispose]();
      progress.end();
    },
  };
}

/** JSON lines on stdout. */
function jsonWatch({ output }: CommandContext, { prompt, ids, path }: Asking): AskWatch {
  const print = (line: object) => output.printJson(line);
  print({ type: 'ask.started', prompt, models: ids, path });
  return {
    heed: () => {},
    turned: (snapshot) => print({ type: 'model.turn', ...withoutContents(snapshot) }),
    ended: (response) => print({ type: 'model.ended', ...response }),
    leaving: () => {},
    end: ({ responses: _, ...result }) => print({ type: 'ask.ended', ...result }),
    close: () => {},
  };
}

/** Every turn has all proposed changes; the contents of files are printed once, with the answer. */
function withoutContents(snapshot: ResponseSnapshot): object {
  const { proposedWrites, ...rest } = snapshot;
  if (!proposedWrites) return rest;
  const named = proposedWrites.map(({ path, delete: isDeleted }) => (isDeleted ? { path, delete: true } : { path }));
  return { ...rest, proposedWrites: named };
}

const forward = ['\t', '\u001b[C', '\u001b[B'];
const back = ['\u001b[Z', '\u001b[D', '\u001b[A'];
const CTRL_C = '\u0003';

/**
 * Lets the keys of a terminal choose whose text is shown. Reading single keys needs raw mode, in which the terminal no longer
 * handles Ctrl-C: the disposal ends raw mode.
 */
function followKeys(progress: Pick<AskProgress, 'moveFocus'>): Disposable {
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
