import type { AnswerState, Executor } from '../../index.ts';
import { withDeadline } from '../../values/deadline.ts';
import { sha256 } from '../../values/digest.ts';
import { hasCode } from '../../values/error-data.ts';
import { ThreadBusyError } from '../../values/errors.ts';
import { RequestError } from '../problem.ts';
import type { Call } from '../route.ts';
import { chatFrames, nothingNew } from './chat-stream.ts';
import { alsoAsk, liveRun, type OpenChat, openChat, threadOfChat, turnOfAnswer } from './chat-thread.ts';
import { sourceOf, streamChat, streamFrames, streamNothing } from './follow-chat.ts';
import { personWaits } from './held-run.ts';
import type { PagePosition } from './page-position.ts';
import { type PostedAnswer, type PostedChat, type PostedMessage, postedChat } from './posted-chat.ts';

/** The label of a run that takes the place of another one, by which a repeated request finds it. */
const KEY_LABEL = 'idempotency-key';

/** Most parts of one turn, as a thread takes them. */
const MAX_TURN_PARTS = 100;

/** How often the place of a message in its queue is looked up, and the end of a run that another process ends, ms. */
const LOOK_MS = 200;
/** How long a run that must go has for its end, ms. */
const END_MS = 10_000;

/** The handlers that have looked which `ai` is installed. */
const looked = new WeakSet<Call['served']['web']>();

/** Says once that pages built here cannot read the answers: the package `ai` of this folder is of another major. */
function tellOtherMajor({ web }: Call['served']): void {
  if (looked.has(web)) return;
  looked.add(web);
  try {
    const { createRequire } = process.getBuiltinModule('node:module');
    const { version } = createRequire(`${process.cwd()}/page.js`)('ai/package.json') as { readonly version: string };
    if (!version.startsWith('7.')) web.warn('http.chat.major', { version });
  } catch {
    // The page is built elsewhere.
  }
}

/** Takes a body of `useChat`: gives its answers, sends its news, and streams what follows. */
export async function postChat(call: Call): Promise<Response> {
  tellOtherMajor(call.served);
  const { id, agent: agentId } = call.body;
  const chat = await openChat(call, { threadId: String(id), action: 'read', agentId });
  const posted = postedChat(call.body);
  const live = await liveRun(chat);
  const answered = live === undefined ? noAnswers : await giveAnswers(chat, live, posted.answers);
  const sent = await sendNews(chat, posted, live);
  if (sent) return streamTurn(chat, sent);
  return continueMessage(chat, posted, answered);
}

/** The answers of a page. */
interface Answered {
  /** The waits that are answered now, with the calls of the page. */
  readonly taken: ReadonlyMap<string, string>;
  /** The waits whose answers were refused, with the codes: the page shows them as answered. */
  readonly refused: ReadonlyMap<string, string>;
}

const noAnswers: Answered = { taken: new Map(), refused: new Map() };

/** Gives the answers for open waits. */
async function giveAnswers(chat: OpenChat, runId: string, answers: readonly PostedAnswer[]): Promise<Answered> {
  const { executor } = chat.call.served;
  const open = answers.length > 0 ? await personWaits(executor, runId) : new Set<string>();
  const fresh = answers.filter(({ waitId }) => open.has(waitId));
  if (fresh.length === 0) return noAnswers;
  const [taken, refused] = [new Map<string, string>(), new Map<string, string>()];
  const { by } = await alsoAsk(chat, 'answer');
  for (const answer of fresh) {
    const code = await give(executor, runId, { answer, ...(by ? { by } : {}) });
    if (code === undefined) taken.set(answer.waitId, answer.callId);
    else if (isRefusal.has(code)) refused.set(answer.waitId, code);
  }
  return { taken, refused };
}

/** The codes of an answer that its wait did not take: it is still open. */
const isRefusal = new Set(['ANSWER_REFUSED', 'ANSWER_REDACTED', 'PERSON_REQUIRED']);

type Given = { readonly answer: PostedAnswer; readonly by?: NonNullable<OpenChat['grant']['by']> };

/**
 * Gives one answer. Another answer that came first is no error, and neither is one that is refused: the page gets the question
 * again.
 * @returns the code of the error if it was not taken
 */
async function give(executor: Executor, runId: string, { answer, by }: Given): Promise<string | undefined> {
  if (!by && answer.how !== 'answer') return 'PERSON_REQUIRED';
  try {
    await say(executor, runId, { answer, ...(by ? { by } : {}) });
    return undefined;
  } catch (error) {
    // A wait that needs a person refuses an answer without one as a wrong call.
    if (error instanceof TypeError) return 'PERSON_REQUIRED';
    const codes = ['WAIT_GONE', 'ALREADY_ANSWERED', 'ANSWER_REFUSED', 'ANSWER_REDACTED', 'RUN_NOT_FOUND'];
    const known = codes.find((code) => hasCode(error, code));
    if (known === undefined) throw error;
    return known;
  }
}

function say(executor: Executor, runId: string, { answer, by }: Given): Promise<AnswerState> {
  const control = executor.control(runId);
  const who = by ? { by } : {};
  switch (answer.how) {
    case 'approve': {
      const { note, digest } = answer;
      const more = { ...(note === undefined ? {} : { note }), ...(digest === undefined ? {} : { digest }) };
      return control.approve(answer.waitId, { ...who, ...more });
    }
    case 'deny':
      return control.deny(answer.waitId, { ...who, ...(answer.reason === undefined ? {} : { reason: answer.reason }) });
    case 'answer':
      return control.answer(answer.waitId, answer.value, who);
  }
}

/** A turn of the chat whose message the page gets from the beginning. */
interface Turn {
  readonly runId: string;
  readonly messageId: string;
  /** The run that this request cancels. */
  readonly interrupts?: string;
}

/** Sends the messages that the thread does not know, as one turn. @returns undefined if the body has no message to stream */
async function sendNews(chat: OpenChat, posted: PostedChat, live: string | undefined): Promise<Turn | undefined> {
  const last = posted.tail.at(-1);
  if (!last) return undefined;
  const known = await chat.thread.turn(last.id);
  const key = chat.call.request.headers.get('idempotency-key') ?? undefined;
  if (known && replaces(posted, last)) {
    // Sent again, it is known; other content under the same key is a conflict.
    const again = !(await isMadeBy(chat, known.runId, key));
    if (again) await takeBack(chat, last.id);
    return send(chat, await unknownOf(chat, posted.tail), { live: undefined, key, again });
  }
  // A page may continue an earlier message, to which it has an answer.
  if (known) return posted.continued ? undefined : { runId: known.runId, messageId: last.id };
  return send(chat, await unknownOf(chat, posted.tail), { live });
}

/** Whether a message takes the place of one that the thread knows: it is edited, or its answer is made again. */
function replaces({ isRegenerate, messageId }: PostedChat, { id }: PostedMessage): boolean {
  return isRegenerate || messageId === id;
}

async function isMadeBy({ call }: OpenChat, runId: string, key: string | undefined): Promise<boolean> {
  if (key === undefined) return false;
  const line = await call.served.executor.find(runId);
  return line !== null && 'labels' in line && line.labels?.[KEY_LABEL] === keyOf(key);
}

function keyOf(key: string): string {
  return sha256(key).slice(0, 32);
}

/** Ends the live run, and drops the turns after a message. Its own goes with the commit that begins its next run. */
async function takeBack(chat: OpenChat, messageId: string): Promise<void> {
  await alsoAsk(chat, 'delete');
  const { clock } = chat.call.served.web;
  const ended = (async () => {
    for (let live = await liveRun(chat); live !== undefined; live = await liveRun(chat)) {
      await cancel(chat.call.served.executor, live);
      if ((await liveRun(chat)) === live) await pause(chat.call, LOOK_MS);
    }
  })();
  await withDeadline(ended, { ms: END_MS, clock, what: 'ending the run' }).catch((error: unknown) => {
    if (hasCode(error, 'PORT_TIMEOUT')) throw new ThreadBusyError('the run of this message has not ended yet');
    throw error;
  });
  await chat.thread.rewind(messageId);
}

async function cancel(executor: Executor, runId: string): Promise<void> {
  try {
    await executor.control(runId).cancel('the message was made again');
  } catch (error) {
    if (!hasCode(error, 'RUN_NOT_FOUND')) throw error;
  }
}

function pause({ served }: Call, ms: number): Promise<void> {
  return new Promise((resolve) => {
    served.web.clock.setTimeout(resolve, ms);
  });
}

/** The messages behind the last one that the thread knows. */
async function unknownOf({ thread }: OpenChat, tail: readonly PostedMessage[]): Promise<readonly PostedMessage[]> {
  for (let i = tail.length - 2; i >= 0; i--) if (await thread.turn(tail[i]?.id ?? '')) return tail.slice(i + 1);
  return tail;
}

interface Sending {
  readonly live: string | undefined;
  readonly key?: string | undefined;
  /** The thread has the message, and it gets another run. */
  readonly again?: boolean;
}

/** Sends messages as one turn. A message behind a wait for a person cancels the run, unless the host wants it to queue. */
async function send(
  chat: OpenChat,
  messages: readonly PostedMessage[],
  { live, key, again = false }: Sending,
): Promise<Turn> {
  const parts = messages.flatMap((message) => message.parts);
  if (parts.length > MAX_TURN_PARTS)
    throw new RequestError('BAD_REQUEST', `one turn has at most ${MAX_TURN_PARTS} parts, not ${parts.length}`);
  const grant = await alsoAsk(chat, 'start');
  const { executor, onWaiting } = chat.call.served;
  const isHeld = live !== undefined && onWaiting === 'interrupt' && (await personWaits(executor, live)).size > 0;
  const labels = key === undefined ? {} : { [KEY_LABEL]: keyOf(key) };
  const thread = threadOfChat({ executor, threadId: chat.threadId, agent: chat.agent, grant }, labels);
  const messageId = messages.at(-1)?.id ?? '';
  const sending = { id: messageId, parts, onBusy: isHeld ? 'interrupt' : 'queue' } as const;
  const { runId } = await (again ? thread.retry(messageId, { parts }) : thread.send(sending));
  return { runId, messageId, ...(isHeld ? { interrupts: live } : {}) };
}

/** Streams a turn from its beginning, once it has begun. */
function streamTurn(chat: OpenChat, turn: Turn): Promise<Response> {
  return streamFrames(chat, (signal) => turnFrames(chat, turn, signal));
}

async function* turnFrames(chat: OpenChat, turn: Turn, signal: AbortSignal): AsyncGenerator<string> {
  const { executor } = chat.call.served;
  const isQueued = async () => (await chat.thread.turn(turn.messageId))?.state === 'queued';
  while (await isQueued()) {
    const live = await liveRun(chat);
    // Only a person can end the run before it: this page has the question, and must not wait for its own answer. A parked run is
    // ended by the message behind it.
    const isHeld = live !== undefined && live !== turn.interrupts && (await personWaits(executor, live)).size > 0;
    if (isHeld) return yield* nothingNew();
    await pause(chat.call, LOOK_MS);
    signal.throwIfAborted();
  }
  yield* chatFrames({ ...sourceOf(chat), runId: turn.runId }, signal);
}

/** Streams the rest of a message of the assistant. */
async function continueMessage(chat: OpenChat, posted: PostedChat, { taken, refused }: Answered): Promise<Response> {
  const { continued, answers } = posted;
  const turn = continued && (await turnOfAnswer(chat, continued.id));
  if (!turn || turn.state === 'queued') return streamNothing(chat);
  const own = answers.filter(({ callId }) => continued.callIds.includes(callId));
  const isEnded = turn.state === 'ended';
  if (isEnded && own.length === 0) return streamNothing(chat);
  const calls = new Set(own.map(({ callId }) => callId));
  const outputs = new Set(own.flatMap(({ how, callId }) => (how === 'answer' ? callId : [])));
  const position: PagePosition =
    own.length > 0
      ? { kind: 'answered', step: continued.steps, calls, waits: taken, outputs }
      : { kind: 'cut', step: continued.steps };
  try {
    return await streamChat(
      chat,
      { runId: turn.runId, position, answered: new Set(taken.keys()), refused },
      { isOver: isEnded },
    );
  } catch (error) {
    if (hasCode(error, 'JOURNAL_GONE')) return streamNothing(chat);
    throw error;
  }
}
