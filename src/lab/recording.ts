import type { JsonValue, Message } from '../index.ts';
import { stepPlaces } from '../record/steps.ts';
import { isRepairRequest } from '../run/pipeline.ts';
import { isRefusal } from '../tool/unfit.ts';
import { canonicalJson } from '../values/json.ts';
import type { RecordedCall, RecordedRun, RecordedStep } from './recorded-run.ts';

/** A tool call of a replay, or of its recording. */
export interface ReplayedCall {
  /** Counts from 1. */
  readonly step: number;
  readonly name: string;
  readonly input: JsonValue;
}

interface Take extends ReplayedCall {
  readonly call: RecordedCall;
  isUsed: boolean;
}

/** The answers of a recorded run's model and tools. Each is used once. */
export class Recording {
  /** The messages that the run began with. */
  readonly opening: readonly Message[];
  readonly #steps: readonly RecordedStep[];
  /** What was said after the last step. */
  readonly #rest: readonly Message[];
  readonly #takes: Take[] = [];
  readonly #byCall = new Map<string, Take[]>();
  readonly #byName = new Map<string, Take[]>();
  #answers = 0;

  constructor(run: RecordedRun) {
    const { steps } = run;
    this.#steps = steps;
    ({ opening: this.opening, rest: this.#rest } = endsOf(run));
    for (const [i, { calls }] of steps.entries()) {
      for (const call of calls) this.#add({ step: i + 1, name: call.name, input: call.input, call, isUsed: false });
    }
  }

  #add(take: Take): void {
    this.#takes.push(take);
    addTo(this.#byCall, keyOf(take), take);
    // The refusal of a call is the result of no other one.
    if (!isUnfit(take.call)) addTo(this.#byName, take.name, take);
  }

  /** Whether each answer of the model is used. */
  get isOver(): boolean {
    return this.#answers >= this.#steps.length;
  }

  /** Whether something was said after the last step. */
  get hasRest(): boolean {
    return this.#rest.length > 0;
  }

  /** How many answers of the model are used. */
  get answers(): number {
    return this.#answers;
  }

  /** Returns the next answer of the model; undefined if this phase has no other. */
  nextAnswer(phase: string | undefined): RecordedStep | undefined {
    const next = this.#steps[this.#answers];
    // The phase in progress of a run whose agent was not known has no name.
    if (!next || (next.phase !== phase && next.phase !== '')) return undefined;
    this.#answers += 1;
    return next;
  }

  /** Returns what was said before the step of this number, as far as the machine does not say it itself; 1 is the first. */
  saidBefore(step: number): readonly Message[] {
    const [last, next] = [this.#steps[step - 2], this.#steps[step - 1]];
    const said = next?.before ?? (last || step === 1 ? this.#rest : []);
    const [first] = said;
    return last?.calls.length === 0 && first && isRepairRequest(first) ? said.slice(1) : said;
  }

  /** Takes the recorded call of this name and input, wherever it is: the one of the same id, if there is one. */
  takeEqual(call: Pick<RecordedCall, 'id' | 'name' | 'input'>): RecordedCall | undefined {
    const equal = this.#byCall.get(keyOf(call)) ?? [];
    return used([...equal.filter((take) => take.call.id === call.id), ...equal]);
  }

  /** Takes the next recorded call of this name that its tool has answered. */
  takeNamed(name: string): RecordedCall | undefined {
    return used(this.#byName.get(name));
  }

  /** The recorded calls that no call of the replay has used. */
  get unused(): readonly ReplayedCall[] {
    return this.#takes.filter(({ isUsed }) => !isUsed).map(({ step, name, input }) => ({ step, name, input }));
  }
}

function used(takes: readonly Take[] = []): RecordedCall | undefined {
  const take = takes.find(({ isUsed }) => !isUsed);
  if (take) take.isUsed = true;
  return take?.call;
}

function addTo(takes: Map<string, Take[]>, key: string, take: Take): void {
  const list = takes.get(key);
  if (list) list.push(take);
  else takes.set(key, [take]);
}

/** Whether a call was refused before its tool began. */
function isUnfit({ name, output }: RecordedCall): boolean {
  return output.type === 'error-text' && isRefusal(name, output.value);
}

const keyOf = ({ name, input }: Pick<ReplayedCall, 'name' | 'input'>) => `${name}\n${canonicalJson(input)}`;

/** What stands before the first step of a run, and after its last one. */
export function endsOf({ messages, steps }: Pick<RecordedRun, 'messages' | 'steps'>): {
  readonly opening: readonly Message[];
  readonly rest: readonly Message[];
} {
  const places = stepPlaces(messages, 0);
  const first = places[places.length - steps.length]?.at;
  const last = places.at(-1)?.end;
  if (first === undefined || last === undefined) {
    const opening = last === undefined ? 1 : messages.length;
    return { opening: messages.slice(0, opening), rest: messages.slice(opening) };
  }
  return { opening: messages.slice(0, first - (steps[0]?.before.length ?? 0)), rest: messages.slice(last) };
}
