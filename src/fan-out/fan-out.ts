import { resolve } from 'node:path';
import { type ActorRefFrom, createActor, fromPromise, waitFor } from 'xstate';
import { type FanOutContext, type FanOutEmitted, fanOutMachine } from '../../machines/index.ts';
import { Root } from '../edits/root/root.ts';
import { guarded } from '../executor/host/guard.ts';
import { isShutdown } from '../run/finalize.ts';
import { toErrorData } from '../values/error-data.ts';
import { CancelledError, DeadlineExceededError, ShutdownError } from '../values/errors.ts';
import { checkFanOut, DEADLINE_MS, type FanOutOptions, type FanOutResult } from './options.ts';
import { FanOutSession } from './session.ts';

/** How long an interrupted model waits for its calls with effects, ms. */
const LEAVE_MS = 7_500;

/**
 * Asks several models the same question at the same time. If one fails, the others continue. With a `path` each completed
 * turn is recorded. After a crash, a cancel or a deadline, the same call with the same path and prompt continues: completed
 * models are not asked again, the others continue from their last step. At the end the checkpoint file is deleted, and the
 * answers are in `.pawl/answers.json` of the `root`, or of the checkpoint file's folder.
 *
 * Writes are proposed, not applied: see `applyWrites`.
 *
 * @throws {TypeError} for invalid options
 * @throws {FAN_OUT_OWNED_ELSEWHERE} while another process or call uses the file
 * @throws {FAN_OUT_CONFLICT} if the file belongs to another prompt, or has answers of models that are not named; or if
 *   `<path>.runs` has other content
 * @throws {WRITE_FAILED} if the `root` is not a folder
 * @throws {CHECKPOINT_CORRUPT} {CHECKPOINT_TOO_NEW} {STORE_FULL} {STORE_UNAVAILABLE} before any model is asked
 * @example
 * const { responses } = await fanOut({ prompt: 'Which of the two is faster?', models: { a, b }, path: 'ask.json' })
 * for (const { modelId, text } of responses) console.log(modelId, text)
 */
export async function fanOut(options: FanOutOptions): Promise<FanOutResult> {
  checkFanOut(options);
  const session = new FanOutSession({ ...options, ...placesOf(options) });
  const inspect = guarded('inspect', options.inspect, session.warn);
  const failure: { error?: unknown } = {};
  const actor = createActor(chartOf(session, failure), {
    id: 'fan-out',
    input: { hasJudge: options.judge !== undefined },
    ...(inspect ? { inspect } : {}),
  });
  const timers = new Timers(session, actor);
  actor.on('*', (event) => timers.heed(event));
  const signal = options.signal;
  const leave = () => actor.send({ type: 'fan-out.leave', cause: causeOf(signal?.reason) });
  actor.start();
  if (signal?.aborted) leave();
  else signal?.addEventListener('abort', leave, { once: true });
  await waitFor(actor, ({ status }) => status !== 'active');
  signal?.removeEventListener('abort', leave);
  if ('error' in failure) throw failure.error;
  return session.result();
}

/** Paths must stay the same if the host changes its working folder during the call. */
function placesOf({ path, root }: FanOutOptions): Pick<FanOutOptions, 'path' | 'root'> {
  return {
    ...(path === undefined ? {} : { path: resolve(path) }),
    ...(root === undefined ? {} : { root: resolve(root) }),
  };
}

type FanOutActor = ActorRefFrom<ReturnType<typeof fanOutMachine>>;

/** The chart with the session's actors: the run of each model, and what happens before and after. */
function chartOf(session: FanOutSession, failure: { error?: unknown }) {
  const models = session.agents.map((agent, place) => [`model(${place})`, session.executor.logic(agent)]);
  return fanOutMachine(session.agents).provide({
    actors: {
      open: fromPromise(async () => {
        try {
          // No model is paid for work on a folder that does not exist.
          if (session.options.root !== undefined) await Root.open(session.options.root);
          return await session.open();
        } catch (error) {
          failure.error = error;
          return { error: toErrorData(error) };
        }
      }),
      judge: fromPromise<void>(({ signal }) => session.judge(signal)),
      close: fromPromise<void, FanOutContext>(({ input }) => session.close(input)),
      ...Object.fromEntries(models),
    },
  });
}

/** Timers on the caller's clock, which XState's own timers do not use. */
class Timers {
  readonly #session: FanOutSession;
  readonly #actor: FanOutActor;
  readonly #timers = new Map<number, unknown>();

  constructor(session: FanOutSession, actor: FanOutActor) {
    this.#session = session;
    this.#actor = actor;
  }

  heed(event: FanOutEmitted): void {
    const { place } = event;
    const { deadlineMs = DEADLINE_MS } = this.#session.options;
    this.#session.clock.clearTimeout(this.#timers.get(place));
    if (event.type === 'model.asked') {
      this.#session.noteBegun(place, event.invocation);
      this.#after(place, deadlineMs, () => {
        const overdue = new DeadlineExceededError(`the model took longer than ${deadlineMs} ms (deadlineMs)`);
        const cause = toErrorData(new ShutdownError('the model exceeded its deadline', { cause: overdue }));
        this.#actor.send({ type: 'model.overdue', place, cause });
      });
    } else if (event.type === 'model.ended') {
      this.#session.noteEnded(event);
    } else {
      this.#after(place, LEAVE_MS, () => this.#actor.send({ type: 'leave.overdue', place }));
    }
  }

  #after(place: number, ms: number, act: () => void): void {
    this.#timers.set(place, this.#session.clock.setTimeout(act, ms));
  }
}

/** A run that is shut down keeps its record. The reason is the cause of the error. */
function causeOf(reason: unknown) {
  const why = isShutdown(reason) ? reason : new CancelledError('the caller cancelled it', { cause: reason });
  return toErrorData(new ShutdownError('the fan-out was interrupted', { cause: why }));
}
