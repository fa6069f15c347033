import type { FanOutContext, FanOutEmitted, FanOutOpening } from '../../machines/index.ts';
import { fileTools } from '../edits/file-tools.ts';
import { Overlay } from '../edits/overlay.ts';
import { guardedClock } from '../executor/host/guarded-clock.ts';
import {
  type Agent,
  type Clock,
  createExecutor,
  defineAgent,
  type Executor,
  type Invocation,
  type Model,
} from '../index.ts';
import { LogLines, type Warn } from '../log/log.ts';
import { checkHostRunId } from '../run/identity.ts';
import { sha256 } from '../values/digest.ts';
import { type ErrorData, toErrorData } from '../values/error-data.ts';
import { isAgentId } from '../values/known-options.ts';
import { letGo } from '../values/thenable.ts';
import { Choice } from './choice.ts';
import { costsBy, type Paid } from './cost-budget.ts';
import { inputsAfter, inputsOf } from './earlier-spend.ts';
import { KeptAnswers, type KeptEnd } from './kept-answers.ts';
import { ModelWatch, stopReasonOf } from './model-watch.ts';
import { checkTools, type FanOutOptions, type FanOutResult, keptMs } from './options.ts';
import {
  copyOf,
  fromModelResponse,
  inProgress,
  type ModelResponse,
  snapshotFromPartial,
  toModelResponse,
} from './snapshot.ts';

/** One call of fanOut: the executor of its runs, the progress of each model, the judge, its files. */
export class FanOutSession {
  readonly options: FanOutOptions;
  readonly clock: Clock;
  readonly warn: Warn;
  readonly executor: Executor;
  readonly watches: readonly ModelWatch[];
  readonly agents: readonly Agent[];
  readonly #kept: KeptAnswers | undefined;
  readonly #newId: () => string;
  readonly #byRun = new Map<string, ModelWatch>();
  readonly #responses = new Map<string, ModelResponse>();
  /** The readers of the runs' events, by place, until they reach the end. */
  readonly #following = new Map<number, Promise<void>>();
  readonly #ending: Promise<void>[] = [];
  readonly #choice: Choice;
  #saveError: ErrorData | undefined;
  #path: string | undefined;
  /** The end of an earlier call, which this one returns. */
  #end: KeptEnd | undefined;
  readonly #birth = crypto.randomUUID();
  /** Why the models that were not asked yet are not asked. */
  #calledOff: ErrorData | undefined;

  constructor(options: FanOutOptions) {
    const { models, path, prompt, root, verbose = false } = options;
    const ids = Object.keys(models);
    this.options = options;
    const lines = new LogLines(options.logger);
    this.warn = lines.warn;
    const clock = guardedClock(options.clock, this.warn);
    lines.clock = clock;
    this.clock = clock;
    this.#choice = new Choice(options, { clock, warn: this.warn });
    this.#newId = idsOf(options.ids, this.warn, (id) => this.#kept?.records.has(id) ?? false);
    this.watches = ids.map(
      (id) => new ModelWatch(id, root === undefined ? undefined : new Overlay(root, path), () => clock.monotonic()),
    );
    this.agents = this.watches.map((watch) => agentOf(watch, options));
    const subject = { prompt, adapterIds: ids, verbose, birth: this.#birth };
    if (path !== undefined) this.#kept = new KeptAnswers({ ...subject, path }, { root, clock });
    this.executor = this.#executor();
  }

  /** Claims the file, and returns which models are left to ask. @throws errors of the claim and of reading the file */
  async open(): Promise<FanOutOpening> {
    await this.#kept?.open();
    this.#end = await this.#findEnd();
    if (this.#end) return this.#asBefore(this.#end);
    const notGoingOn = (runId: string, error: unknown) => this.warn('fan-out.run.unreadable', { runId, error });
    const unfinished = await this.#kept?.listUnfinished(this.executor, notGoingOn);
    const invocations = this.watches.map((watch): Invocation | null => {
      const answered = this.#kept?.completed(watch.modelId);
      if (answered) {
        this.#onAnswered(answered);
        return null;
      }
      const record = unfinished?.get(agentIdOf(watch.modelId));
      const before = this.#kept?.before(watch.modelId);
      // A continued run must have the same inputs as before.
      const next = record ? inputsOf(record) : inputsAfter(before);
      if (record) watch.restore(record, before);
      else watch.carry(next.inputs);
      const runId = record?.meta.runId ?? this.#newId();
      this.#byRun.set(runId, watch);
      return { runId, prompt: this.options.prompt, callerId: watch.modelId, ...next };
    });
    // From here on a later call knows the prompt and the models, even after a crash.
    await this.#kept?.flush();
    return { invocations };
  }

  /** A file of answers that cannot be read is no end, and does not keep the models from being asked. */
  async #findEnd(): Promise<KeptEnd | undefined> {
    if (this.options.fresh) return undefined;
    const request = { instructions: instructionsOf(this.options), keptMs: keptMs(this.options) };
    return this.#kept?.findEnd(request).catch((error: unknown) => {
      this.warn('fan-out.answers.unreadable', { error });
      return undefined;
    });
  }

  #asBefore(end: KeptEnd): FanOutOpening {
    for (const response of end.responses) this.#onAnswered(response);
    this.#choice.keep(end);
    this.#path = end.path;
    return { invocations: this.watches.map(() => null) };
  }

  /** The run of a model has started. Its handle exists as soon as its actor has started. */
  noteBegun(place: number, { runId = '' }: Invocation): void {
    const watch = this.#watchAt(place);
    watch.begin();
    const follow = async () => {
      await Promise.resolve();
      const run = this.executor.get(runId);
      if (!run?.actor) return;
      for await (const event of run.events()) {
        watch.heed(event);
        this.#tell('onEvent', () => this.options.onEvent?.(watch.modelId, event));
      }
    };
    const lost = (error: unknown) => this.warn('fan-out.events.lost', { runId, error });
    this.#following.set(place, follow().catch(lost));
  }

  /** The run of a model has ended; its last deltas may not have arrived yet. */
  noteEnded({ place, output, cause }: Extract<FanOutEmitted, { type: 'model.ended' }>): void {
    const answer = async () => {
      await this.#following.get(place);
      this.#onAnswered(this.#watchAt(place).end(output, cause));
    };
    this.#ending.push(answer());
  }

  async judge(signal: AbortSignal): Promise<void> {
    if (this.#end) return;
    const ranking = this.#kept?.ranking;
    if (ranking) return this.#choice.keep({ ranking });
    await Promise.all(this.#ending);
    await this.#choice.make(this.responses(), this.#kept?.birth ?? this.#birth, signal);
  }

  /** Releases all resources; the files are what the next call continues from, or what `applyWrites` reads. */
  async close({ error, cause }: FanOutContext): Promise<void> {
    this.#calledOff = cause;
    await Promise.all(this.#ending);
    await this.executor.shutdown();
    try {
      if (error === undefined && !this.#end) {
        const judged = { ...this.#choice.result(), instructions: instructionsOf(this.options) };
        this.#path = await this.#kept?.finish(this.responses(), judged);
      }
      // The final write has stored what earlier writes could not.
      this.#saveError = undefined;
    } catch (error) {
      this.#path = this.options.path;
      this.#onUnsaved(error);
    }
    await this.#kept?.close().catch((error) => this.warn('fan-out.lock.kept', { error }));
  }

  /** In adapter order. A model that was not asked has the response of an earlier process. */
  responses(): readonly ModelResponse[] {
    return this.watches.map((watch) => this.#responses.get(watch.modelId) ?? this.#notAsked(watch));
  }

  result(): FanOutResult {
    const responses = this.responses();
    return {
      responses,
      interrupted: responses.some(({ interrupted }) => interrupted),
      ...this.#choice.result(),
      ...(this.#path === undefined ? {} : { path: this.#path }),
      ...(this.#saveError ? { saveError: this.#saveError } : {}),
      ...(this.#end ? { kept: true, endedAt: Date.parse(String(this.#end.endedAt)) } : {}),
    };
  }

  #notAsked(watch: ModelWatch): ModelResponse {
    const before = this.#kept?.before(watch.modelId);
    const response = before
      ? toModelResponse(before)
      : toModelResponse(snapshotFromPartial(watch.modelId, watch.partial()));
    // The file may lack its proposed writes if they are many; then the record has them.
    const proposedWrites = watch.partial().proposedWrites ?? [];
    return {
      ...response,
      ...(response.proposedWrites.length === 0 ? { proposedWrites } : {}),
      interrupted: true,
      stopReason: response.stopReason || stopReasonOf('interrupted', this.#calledOff),
    };
  }

  #onAnswered(response: ModelResponse): void {
    this.#responses.set(response.modelId, response);
    this.#tell('onResponse', () => this.options.onResponse?.(copyOf(response)));
  }

  #watchAt(place: number): ModelWatch {
    return this.watches[place] as ModelWatch;
  }

  #executor(): Executor {
    const { prices, ports, logger, defaults, random } = this.options;
    const paid = (modelId: string, { usd }: Paid) => this.watches.find((watch) => watch.modelId === modelId)?.paid(usd);
    return createExecutor({
      ...(this.#kept ? { store: this.#kept.records.store, requireDurable: true } : {}),
      // The file has the answers. Stored outcomes would be returned again if the host's port repeats a run id.
      retention: { outcomes: 0 },
      ...(prices || ports?.budget ? { ports: { budget: costsBy(this.options, paid) } } : {}),
      ...(logger ? { logger } : {}),
      ...(defaults ? { defaults } : {}),
      ...(random ? { random } : {}),
      clock: this.clock,
      onStep: (step) => {
        const watch = this.#byRun.get(step.runId);
        watch?.noteStep(step);
        if (watch) this.#onTurn(watch);
      },
      // The answer must be in the file before the run's record is deleted: a crash between the two loses nothing.
      onOutcome: async (outcome) => {
        const watch = this.#byRun.get(outcome.runId);
        if (watch) await this.#kept?.put(fromModelResponse(watch.end(outcome)));
      },
    });
  }

  /** Steps do not wait for the file. */
  #onTurn(watch: ModelWatch): void {
    const snapshot = snapshotFromPartial(watch.modelId, watch.partial());
    this.#kept?.put(inProgress(snapshot)).catch((error) => this.#onUnsaved(error));
    this.#tell('onTurn', () => this.options.onTurn?.(copyOf(snapshot)));
  }

  #onUnsaved(error: unknown): void {
    this.#saveError = toErrorData(error);
    this.warn('fan-out.file.failed', { error: this.#saveError });
  }

  #tell(what: string, callback: () => unknown): void {
    try {
      letGo(callback());
    } catch (error) {
      this.warn('fan-out.callback.threw', { what, error });
    }
  }
}

const WORK_ON_FILES =
  'You work on the files of a folder. Look at them with list_files and read_file. What you write or delete is queued: it ' +
  'is applied when your answer is chosen. Say in your answer what you have changed, and why.';

function instructionsOf({ instructions, root }: FanOutOptions): string {
  return instructions ?? (root === undefined ? '' : WORK_ON_FILES);
}

/** The id of a model's agent: a model may have any name. */
const agentIdOf = (modelId: string): string => (isAgentId(modelId) ? modelId : sha256(modelId));

/** The agent of one model: its own view of the files, and the common options. @throws {TypeError} for invalid tools */
function agentOf({ modelId, overlay }: ModelWatch, options: FanOutOptions): Agent {
  const { maxSteps } = options;
  const tools = [...(options.tools ?? []), ...(overlay ? fileTools(overlay) : [])];
  checkTools(tools);
  return defineAgent({
    id: agentIdOf(modelId),
    model: options.models[modelId] as Model,
    instructions: instructionsOf(options),
    tools,
    ...(maxSteps === undefined ? {} : { maxSteps }),
    // This call limits the time of a model: the run must not fail because of it.
    maxRuntimeMs: Number.MAX_SAFE_INTEGER,
  });
}

/**
 * Run ids from the host's port. If the port throws, or returns no id or one that another model has, a random id is used: two
 * models must never share a run.
 * @param isTaken ids of earlier processes, whose ports may have returned the same ids
 */
function idsOf(
  ids: (() => string) | undefined,
  warn: Warn,
  isTaken: (id: string) => boolean = () => false,
): () => string {
  const given = new Set<string>();
  return () => {
    if (!ids) return crypto.randomUUID();
    try {
      const id = checkHostRunId(ids());
      if (given.has(id) || isTaken(id))
        throw new TypeError(`ids gave ${JSON.stringify(id)}, which another run already has`);
      given.add(id);
      return id;
    } catch (error) {
      warn('fan-out.ids.invalid', { error });
      return crypto.randomUUID();
    }
  };
}
