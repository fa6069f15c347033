import type { OpenCall, OpenStep } from '../run/open-step.ts';
import type { PhaseOutput } from '../run/phase.ts';
import type { Progress } from '../run/progress.ts';
import type { RunOutcome, RunOutput } from '../run/result.ts';
import { Transcript } from '../run/transcript.ts';
import { Hidden } from '../values/hidden.ts';
import { dropEncoding, enterMessage, type Message } from '../values/message.ts';
import type { Redactor } from '../values/redact.ts';

const inputLost =
  'The process stopped before this call had ended, and what it was called with is not in the record: it was redacted. ' +
  'Whether it took effect is unknown. Make the call again where that is harmless.';

/** Redacts what is recorded of one run. What was looked at once is not looked at again. */
export class ProgressRedaction {
  readonly #redactor: Redactor;
  readonly #seen = new WeakMap<object, object>();
  #source: Transcript | undefined;
  #redacted = Transcript.of([]);

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  text(text: string): string {
    return this.#redactor.text(text);
  }

  json<T>(value: T): T {
    return this.#redactor.json(value);
  }

  progress(progress: Progress): Progress {
    const { openStep, outcome, parked, inputs, earlier, meta } = progress;
    return {
      ...progress,
      meta: { ...meta, prompt: this.#redactor.text(meta.prompt) },
      inputs: this.#once(inputs, ({ value }) => new Hidden(this.#redactor.json(value))),
      earlier: this.#once(earlier, ({ value }) => new Hidden(value.map((message) => this.#message(message)))),
      transcript: this.transcript(progress.transcript),
      completedPhases: progress.completedPhases.map((phase) => this.#phase(phase)),
      undelivered: progress.undelivered.map((message) => this.#message(message)),
      nudges: progress.nudges.map((message) => this.#message(message)),
      ...(openStep ? { openStep: this.#once(openStep, (step) => this.#openStep(step)) } : {}),
      ...(outcome ? { outcome: this.outcome(outcome) } : {}),
      ...(parked ? { parked: { ...parked, reason: this.#redactor.text(parked.reason) } } : {}),
    };
  }

  /** The redacted messages grow as the others do, so that only what is new is looked at, and stored. */
  transcript(transcript: Transcript): Transcript {
    const isContinued = this.#source !== undefined && transcript.continues(this.#source);
    const from = isContinued ? (this.#source?.length ?? 0) : 0;
    const added = transcript.slice(from).map((message) => this.#message(message));
    this.#redacted = isContinued ? this.#redacted.append(...added) : Transcript.of(added);
    this.#source = transcript;
    return this.#redacted;
  }

  outcome<T extends RunOutput | RunOutcome>(outcome: T): T {
    return this.#once(outcome, () => {
      const { output, error, data, phases, undelivered } = outcome;
      return {
        ...outcome,
        output: this.#redactor.text(output),
        phases: phases.map((phase) => this.#phase(phase)),
        undelivered: undelivered.map((message) => this.#message(message)),
        ...(error ? { error: this.#redactor.error(error) } : {}),
        ...(data === undefined ? {} : { data: this.#redactor.json(data) }),
      };
    });
  }

  #message(message: Message): Message {
    return this.#once(message, () => {
      const changed = this.#redactor.message(message);
      if (changed === message) return message;
      // Nobody stores the text of this one any more.
      dropEncoding(message);
      return enterMessage(changed);
    });
  }

  #phase(phase: PhaseOutput): PhaseOutput {
    return this.#once(phase, ({ data, ...rest }) => ({
      ...rest,
      output: this.#redactor.text(phase.output),
      ...(data === undefined ? {} : { data: this.#redactor.json(data) }),
    }));
  }

  #openStep({ message, calls }: OpenStep): OpenStep {
    return {
      message: this.#message(message) as OpenStep['message'],
      calls: calls.map((call) => this.#once(call, () => this.#call(call))),
    };
  }

  /**
   * A call whose input was changed must not be made with it: a process that takes the run over tells the model instead. Of a
   * `once` call that was under way it says that its outcome is unknown anyway.
   */
  #call({ result, ...call }: OpenCall): OpenCall {
    const input = this.#redactor.json(call.input);
    const redacted = { ...call, input, ...(result ? { result: this.#redactor.output(result) } : {}) };
    const isToRun = call.state === 'planned' || (call.state === 'started' && call.effect !== 'once');
    if (input === call.input || !isToRun) return redacted;
    return { ...redacted, state: 'done', result: { type: 'error-text', value: inputLost } };
  }

  #once<T extends object>(value: T, change: (value: T) => T): T {
    const known = this.#seen.get(value) ?? change(value);
    this.#seen.set(value, known);
    return known as T;
  }
}
