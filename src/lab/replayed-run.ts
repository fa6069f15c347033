import type {
  Critic,
  ImageInput,
  Invocation,
  Message,
  Middleware,
  ModelReply,
  ResumeState,
  Run,
  RunResult,
  ToolOutput,
} from '../index.ts';
import { toToolOutput } from '../tool/output.ts';
import { ReplayMissError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import { textOf, toolCallsOf } from '../values/message.ts';
import { markOf, type RecordedCompaction, unmarked } from '../values/message-mark.ts';
import { isToolName } from '../values/tool-name.ts';
import type { RecordedCall, RecordedRun, RecordedStep } from './recorded-run.ts';
import { Recording, type ReplayedCall } from './recording.ts';
import type { Double, StandIn } from './stand-ins.ts';

/** How a replay answers. */
interface Answering {
  readonly standIn: StandIn;
  readonly doubles: Readonly<Record<string, Double>>;
  readonly onMiss: 'fail' | 'error' | 'read-live';
  readonly isStrict: boolean;
  /** The recorded answers of the model are given again. */
  readonly isBaseline: boolean;
}

/** Ends that the machine of a run finds by itself. Any other end of a recorded run came from outside. */
const ownEnds: ReadonlySet<unknown> = new Set(['STEP_LIMIT', 'TOOL_LOOP', 'OUTPUT_INVALID']);

/** A run that is made again from its recording: what it is asked, what it answers, and what it could not. */
export class ReplayedRun {
  readonly recorded: RecordedRun;
  readonly recording: Recording;
  readonly answering: Answering;
  readonly missed: ReplayedCall[] = [];
  readonly drift: ReplayedCall[] = [];
  /** The recorded calls that answered, by the ids of the calls that they answered; undefined: a double did. */
  readonly answers = new Map<string, RecordedCall | undefined>();
  /** Why the replay was stopped: the recording ends where the run was stopped from outside, or it has no answer. */
  stopped: 'ended' | ReplayMissError | undefined;
  #handle = Promise.withResolvers<Run>();
  #asked = 0;
  #retries = 0;

  constructor(recorded: RecordedRun, answering: Answering) {
    this.recorded = recorded;
    this.recording = new Recording(recorded);
    this.answering = answering;
  }

  /** Begins the run, or continues it where it has ended. @returns how it ends */
  async play(start: () => Promise<Run>): Promise<RunResult> {
    this.#handle = Promise.withResolvers();
    const handle = await start();
    this.#handle.resolve(handle);
    return handle.result;
  }

  /** Whether the recorded run was retried where this one has ended. */
  isToRetry({ status }: RunResult): boolean {
    if (status === 'ok' || this.stopped || !this.#isRetriedHere) return false;
    this.#retries += 1;
    return true;
  }

  /** A retry resets the limit of steps. Where the recorded run was then allowed more of them, this one is too. */
  readonly critic: Critic = {
    monitor: (_, run) => ({
      onActivity: () => {},
      onOutOfSteps: async () => run.raiseSteps(this.#stepsToNextRetry - run.tallies().iteration),
      stop: () => {},
    }),
  };

  get #stepsToNextRetry(): number {
    // What was said after the last step was said for one more.
    const all = this.recorded.steps.length + (this.recording.hasRest ? 1 : 0);
    return this.recorded.retries?.[this.#retries]?.steps ?? all;
  }

  get isRetried(): boolean {
    return this.recorded.retries !== undefined;
  }

  /** How many answers its model has begun to give. */
  get #steps(): number {
    return this.answering.isBaseline ? this.recording.answers : this.#asked;
  }

  /** Whether the next retry of the recorded run came after as many steps as this one has. */
  get #isRetriedHere(): boolean {
    return this.recorded.retries?.[this.#retries]?.steps === this.#steps;
  }

  get handle(): Promise<Run> {
    return this.#handle.promise;
  }

  /** What the replay begins with: the request of the recorded run, and what was said before its first step. */
  get beginning(): { readonly invocation: Invocation; readonly resume?: ResumeState } {
    const { prompt, callerId, labels, inputs, earlier, raisedSteps } = this.recorded;
    const { opening } = this.recording;
    const images = imagesIn(opening, prompt);
    const undelivered = this.recording.saidBefore(1);
    const resume = {
      ...(images ? {} : { history: [...earlier, ...opening] }),
      ...(undelivered.length > 0 ? { undelivered } : {}),
      ...(raisedSteps ? { raisedSteps } : {}),
    };
    return {
      invocation: { prompt, callerId, labels, inputs, history: earlier, images: images ?? [] },
      ...(Object.keys(resume).length > 0 ? { resume } : {}),
    };
  }

  get isCompacted(): boolean {
    return this.recorded.steps.some(({ message }) => markOf(message)?.compacted !== undefined);
  }

  /** Returns what the recorded model got in the place of older messages in the turn that begins. */
  async nextCompaction(): Promise<RecordedCompaction | undefined> {
    const run = await this.handle;
    const step = this.recorded.steps[this.#steps];
    return step && step.phase === this.#phaseOf(run).name ? markOf(step.message)?.compacted : undefined;
  }

  readonly middleware: Middleware = {
    model: async (_, next) => {
      const run = await this.handle;
      // The limits begin again where they did.
      if (this.#isRetriedHere) return endToRetry(run);
      const recorded = this.answering.isBaseline ? this.#nextAnswer(run) : undefined;
      this.#asked += 1;
      // It waits for the next step, as it did when it was said.
      for (const message of this.recording.saidBefore(this.#asked + 1)) await run.steer(textOf(message));
      return recorded ? replyOf(recorded, this.#phaseOf(run), this.recorded) : next();
    },
    tool: async ({ callId: id, name, input, effect, step }, next) => {
      const { doubles, isStrict, onMiss, standIn } = this.answering;
      const call = { step, name, input };
      const equal = this.recording.takeEqual({ id, name, input });
      const double = Object.hasOwn(doubles, name) ? doubles[name] : undefined;
      const found = equal ?? (isStrict && !double ? undefined : this.recording.takeNamed(name));
      if (found || double) this.answers.set(id, double ? undefined : found);
      if (double) return standIn.children.has(name) ? playTool(double, { id, name, input }) : next();
      if (found && !equal) this.drift.push(call);
      if (found) return found.output;
      this.missed.push(call);
      if (onMiss === 'read-live' && effect === 'read') return next();
      const miss = new ReplayMissError(`the recording has no result for this call of ${JSON.stringify(name)}`);
      if (onMiss !== 'error') this.#stop(await this.handle, miss);
      throw miss;
    },
  };

  #nextAnswer(run: Run): RecordedStep {
    const { index, name } = this.#phaseOf(run);
    const recorded = this.recording.nextAnswer(name);
    if (recorded) return recorded;
    const { status, error } = this.recorded;
    const miss = new ReplayMissError('the recording has no further answer of the model');
    const { phases = [] } = this.answering.standIn.agent;
    // In a phase that may fail the run continues without the answer, as it did: its own ends are those of a later phase.
    const isPassed = phases[index]?.optional === true && index < phases.length - 1 && ownEnds.has(error?.code);
    if (this.recording.isOver && status !== 'ok' && !isPassed) {
      // Of a phase that begins again after a crash no step was recorded.
      const isKept = phases[index]?.recovery !== 'boundary';
      this.#stop(run, isKept && !this.recorded.retries && ownEnds.has(error?.code) ? miss : 'ended');
    }
    throw miss;
  }

  #phaseOf(run: Run): { readonly index: number; readonly name: string | undefined } {
    const index = run.actor.getSnapshot().context.progress.completedPhases.length;
    return { index, name: this.answering.standIn.agent.phases?.[index]?.name };
  }

  #stop(run: Run, why: NonNullable<ReplayedRun['stopped']>): void {
    this.stopped ??= why;
    void run.cancel('the replay ends here');
  }
}

/** Ends a run at its next step, to be retried there. */
function endToRetry(run: Run): Promise<never> {
  void run.cancel('the recorded run was retried here');
  return Promise.reject(new ReplayMissError('the recorded run was retried here'));
}

async function playTool(
  double: Double,
  { id, name, input }: { id: string; name: string; input: unknown },
): Promise<ToolOutput> {
  return toToolOutput(await double(input as never, { id, name }), { allowUrls: false });
}

/** The images of an opening that an ordinary start makes of a prompt; undefined for any other opening. */
function imagesIn([first, ...more]: readonly Message[], prompt: string): readonly ImageInput[] | undefined {
  if (more.length > 0 || first?.role !== 'user') return undefined;
  const [text, ...images] = first.content;
  if (text?.type !== 'text' || text.text !== prompt || Object.keys(text).length > 2) return undefined;
  return images.map((image) => {
    const { data, mediaType } = image as { mediaType: string; data: { data?: string; url?: string } };
    return { mediaType, data: data.data ?? data.url ?? '' };
  });
}

/** The recorded answer, as its model gave it. */
function replyOf(step: RecordedStep, phase: { readonly index: number }, run: RecordedRun): ModelReply {
  const message = unmarked(step.message) as ModelReply['message'];
  const isLast = run.steps.at(-1) === step;
  const refused = toolCallsOf(message).flatMap(({ toolCallId }, position) => {
    const why = refusalOf(step.calls.find(({ id }) => id === toolCallId));
    return why === undefined ? [] : [{ position, why }];
  });
  return {
    message:
      phase.index === 0
        ? message
        : { ...message, content: message.content.map((part) => idAsGiven(part, phase.index)) },
    finishReason: step.calls.length > 0 ? 'tool-calls' : (isLast && run.finishReason) || 'stop',
    usage: step.usage,
    ...(refused.length > 0 ? { refused } : {}),
  };
}

type Part = ModelReply['message']['content'][number];

/** In a later phase the run adds the phase to the id of a call, and what keeps it apart. */
function idAsGiven(part: Part, phase: number): Part {
  if (part.type !== 'tool-call' || part.providerExecuted === true) return part;
  const added = part.toolCallId.lastIndexOf(`-p${phase + 1}`);
  return added < 0 ? part : { ...part, toolCallId: part.toolCallId.slice(0, added) };
}

/** Why a recorded call was answered without being made: its arguments or its name could not be read, or its process died with it. */
function refusalOf(call: RecordedCall | undefined): string | undefined {
  if (call?.output.type !== 'error-text') return undefined;
  const isUnread =
    typeof call.input === 'string' || !isToolName(call.name) || (isObject(call.input) && 'omitted' in call.input);
  return isUnread || call.output.value.startsWith('Outcome unknown: ') ? call.output.value : undefined;
}
