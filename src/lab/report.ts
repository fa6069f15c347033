import type { ErrorData, Message, RunResult } from '../index.ts';
import { stepPlaces } from '../record/steps.ts';
import { toErrorData } from '../values/error-data.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../values/json.ts';
import { markOf, unmarked } from '../values/message-mark.ts';
import { type RecordedRun, stepsOf } from './recorded-run.ts';
import type { ReplayedCall } from './recording.ts';
import type { ReplayedRun } from './replayed-run.ts';
import { hasEndedStatus } from './run-form.ts';

/** The first message in which a replay differs from its recording; null = there is none on that side. */
export interface ReplayDifference {
  /** Its step, counted from 1; what is put before an answer belongs to the step of that answer. 0 = the opening of the run. */
  readonly step: number;
  /** Its index in `messages`. */
  readonly message: number;
  readonly recorded: Message | null;
  readonly replayed: Message | null;
}

/** What a replay made of a recorded run, as plain JSON: in the form of the run, and how it compares with it. */
export interface ReplayReport extends RecordedRun {
  /**
   * Transcript, status, output and data are those of the recorded run, to the byte; marks of messages are not compared, and of a
   * candidate neither the ids of calls nor what a provider keeps with a message.
   */
  readonly same: boolean;
  readonly difference: ReplayDifference | null;
  /** The calls that the recording could not answer. */
  readonly missed: readonly ReplayedCall[];
  /** The calls that were answered with the result of another input. */
  readonly drift: readonly ReplayedCall[];
  /** The recorded calls that were not made. */
  readonly unused: readonly ReplayedCall[];
}

/** Makes the report of a replay that is over. */
export async function reportOf(replayed: ReplayedRun, result: RunResult): Promise<ReplayReport> {
  const { recorded, recording, answers, missed, drift, answering } = replayed;
  const { progress } = (await replayed.handle).actor.getSnapshot().context;
  const { raisedSteps: _, spend: __, finishReason: ___, error: ____, data: _____, ...asked } = recorded;
  const skipped = recorded.earlier.length;
  // What the machine would say next is no part of a recording that stops before.
  const made = result.messages.slice(
    skipped,
    endsAsRecorded(replayed) ? skipped + recorded.messages.length : undefined,
  );
  const messages = made.map((message, i) => asRecorded(message, recorded.messages[i], replayed));
  const { agent } = answering.standIn;
  const open = progress.openPhase && [
    { from: progress.openPhase.from ?? 0, name: agent.phases?.[progress.openPhase.index]?.name ?? '' },
  ];
  const phases = [...progress.completedPhases.map(({ from = 0, name }) => ({ from, name })), ...(open ?? [])];
  const steps = stepsOf({
    messages,
    from: recording.opening.length,
    phases: phases.map(({ from, name }) => ({ from: Math.max(0, from - skipped), name })),
    // A call that the recording did not answer was answered by the machine: its input does not fit, or there is no such tool.
    childOf: (call) => (answers.has(call.id) ? answers.get(call.id) : recording.takeEqual(call))?.childRunId,
  });
  const end = endOf(replayed, result);
  const difference = differenceOf(recorded.messages, messages, {
    opening: recording.opening.length,
    textsOf: answering.isBaseline ? () => textOf : candidateTexts,
  });
  const isEnd =
    end.status === recorded.status && end.output === recorded.output && textOf(end.data) === textOf(recorded.data);
  const run: RecordedRun = { ...asked, agentId: agent.id, messages, steps, ...end, usage: result.usage };
  const report = { ...run, same: difference === null && isEnd, difference, missed, drift, unused: recording.unused };
  return JSON.parse(JSON.stringify(report)) as ReplayReport;
}

type End = Pick<RecordedRun, 'status' | 'output' | 'data' | 'error' | 'finishReason'>;

/** A baseline ends where its recording does: where a run stands that has not ended, and where one was stopped from outside. */
function endsAsRecorded({ stopped, recorded, recording, answering, isRetried }: ReplayedRun): boolean {
  const stands = !hasEndedStatus(recorded.status) || (isRetried && recorded.status !== 'ok');
  return stopped === 'ended' || (answering.isBaseline && recording.isOver && stands);
}

function endOf(replayed: ReplayedRun, result: RunResult): End {
  const { stopped, recorded } = replayed;
  if (endsAsRecorded(replayed)) {
    const { status, output, error, finishReason } = recorded;
    return { status, output, ...(error ? { error } : {}), ...(finishReason ? { finishReason } : {}) };
  }
  const { output, finishReason } = result;
  const status = stopped || result.status === 'interrupted' ? 'error' : result.status;
  const error: ErrorData | undefined = stopped ? toErrorData(stopped) : result.error;
  return {
    ...{ status, output },
    ...(result.data === undefined || stopped ? {} : { data: result.data as never }),
    ...(error ? { error } : {}),
    ...(finishReason ? { finishReason } : {}),
  };
}

/** A message that was given again is the recorded one, with its model, tokens and time. Effects are those of the tools of today. */
function asRecorded(message: Message, recorded: Message | undefined, { answering }: ReplayedRun): Message {
  if (!answering.isBaseline || !recorded || textOf(unmarked(message)) !== textOf(unmarked(recorded))) return message;
  if (message.role !== 'assistant' || !markOf(recorded)) return recorded;
  const { effects: _, ...pawl } = (recorded.providerOptions?.pawl ?? {}) as Record<string, never>;
  const effects = markOf(message)?.effects;
  return {
    ...recorded,
    providerOptions: { ...recorded.providerOptions, pawl: { ...pawl, ...(effects ? { effects } : {}) } },
  };
}

function differenceOf(
  recorded: readonly Message[],
  replayed: readonly Message[],
  { opening, textsOf }: { readonly opening: number; readonly textsOf: () => (message: Message | undefined) => string },
): ReplayReport['difference'] {
  const [textOfOne, textOfOther] = [textsOf(), textsOf()];
  for (let i = 0; i < Math.max(recorded.length, replayed.length); i++) {
    const [one, other] = [recorded[i], replayed[i]].map((message) => message && unmarked(message));
    if (textOfOne(one) !== textOfOther(other))
      return {
        step: stepAt(one ? recorded : replayed, i, opening),
        ...{ message: i, recorded: one ?? null, replayed: other ?? null },
      };
  }
  return null;
}

/**
 * Returns what makes the texts by which the messages of a candidate are compared. Each answer has other ids of calls, and
 * something else that its provider keeps with a part: an id is the number of its call here, and the order of keys is none.
 */
function candidateTexts(): (message: Message | undefined) => string {
  const ids = new Map<unknown, number>();
  const numberOf = (id: unknown) => {
    if (!ids.has(id)) ids.set(id, ids.size);
    return ids.get(id) as number;
  };
  const partOf = ({ providerOptions: _, toolCallId, ...part }: JsonObject): JsonObject =>
    toolCallId === undefined ? part : { ...part, toolCallId: numberOf(toolCallId) };
  return (message) => {
    if (!message) return '';
    const { providerOptions: _, content, ...rest } = message as unknown as JsonObject & { readonly content: JsonValue };
    return canonicalJson({
      ...rest,
      content: Array.isArray(content) ? (content as JsonObject[]).map(partOf) : content,
    });
  };
}

function stepAt(messages: readonly Message[], at: number, opening: number): number {
  if (at < opening) return 0;
  const answers = stepPlaces(messages.slice(0, at), opening).length;
  return messages[at]?.role === 'tool' ? answers : answers + 1;
}

const textOf = (value: unknown): string => JSON.stringify(value) ?? '';
