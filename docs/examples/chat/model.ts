// Takes the place of a language model, so that the example runs without a key. It answers word by word, as a real one does, and
// sees nothing but the conversation. WORD_MS=60 is its pace.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Model } from 'pawl';

type Request = Parameters<Model['doStream']>[0];
type Content = Awaited<ReturnType<Model['doGenerate']>>['content'][number];
type Part = Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer P> ? P : never;

const none = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

export function pretendModel(wordMs = Number(process.env.WORD_MS ?? 60)): Model {
  return {
    specificationVersion: 'v4',
    provider: 'pretend',
    modelId: 'pretend',
    supportedUrls: {},
    async doGenerate(request) {
      const content = answerTo(request);
      return { content, finishReason: finishOf(content), usage: none, warnings: [] };
    },
    async doStream(request) {
      return {
        stream: ReadableStream.from(
          spoken(answerTo(request), { wordMs, signal: request.abortSignal }),
        ) as ReadableStream<Part>,
      };
    },
  };
}

async function* spoken(
  content: readonly Content[],
  { wordMs, signal }: { readonly wordMs: number; readonly signal: AbortSignal | undefined },
): AsyncGenerator<Part> {
  yield { type: 'stream-start', warnings: [] };
  for (const part of content) {
    if (part.type === 'tool-call') yield part;
    if (part.type !== 'text') continue;
    yield { type: 'text-start', id: 'text' };
    for (const word of part.text.split(/(?<= )/)) {
      await sleep(wordMs, undefined, signal ? { signal } : {});
      yield { type: 'text-delta', id: 'text', delta: word };
    }
    yield { type: 'text-end', id: 'text' };
  }
  yield { type: 'finish', finishReason: finishOf(content), usage: none };
}

function finishOf(content: readonly Content[]) {
  const unified = content.some(({ type }) => type === 'tool-call') ? ('tool-calls' as const) : ('stop' as const);
  return { unified, raw: unified };
}

function answerTo({ prompt }: Request): Content[] {
  const last = prompt.at(-1);
  if (last?.role === 'tool') return [{ type: 'text', text: reportOn(JSON.stringify(last.content)) }];
  const said = JSON.stringify(last?.content ?? '');
  const to = /[\w.]+@[\w.]+\w/.exec(said)?.[0] ?? (/\bmail\b/i.test(said) ? 'ada@example.com' : undefined);
  if (to === undefined) return [{ type: 'text', text: INTRODUCTION }];
  const input = JSON.stringify({ to, subject: 'Friday’s release', body: MAIL });
  return [
    { type: 'text', text: `Here is a mail to ${to}. Please read it before it leaves. ` },
    { type: 'tool-call', toolCallId: `mail-${prompt.length}`, toolName: 'send_mail', input },
  ];
}

function reportOn(result: string): string {
  if (result.includes('execution-denied'))
    return 'I have not sent it. Tell me what to write instead, and I will ask you again.';
  return result.includes('was sent') ? REPORT : 'The mail has not left. Shall I try it again?';
}

const INTRODUCTION =
  'I write mails, and I ask you before one leaves. Say “Write a mail to ada@example.com”. While I answer, you may end the server ' +
  'with kill -9 and start it again: this page waits, and the rest of the answer comes here, in the same message, without a word ' +
  'twice. It does not matter whether I am in the middle of a sentence, or wait for you.';

const MAIL =
  'Hello Ada,\n\nthe release is ready. All checks are green, and the notes are written. If you say nothing until Friday, it leaves at ' +
  'ten.\n\nBest regards';

const REPORT =
  'Done: the mail has left, once. The server may have died while you were reading it; your answer was recorded before anything ' +
  'was sent, and what is recorded is never done twice. You can close this page now, open it on another machine, and find the same ' +
  'conversation. Ask me for another mail whenever you like.';
