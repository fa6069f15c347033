import type { UIMessage } from 'ai';
import { isToolUIPart } from 'ai';
import type { Client } from 'pawl/client';
import { useEffect, useRef } from 'react';
import { newestRun } from './history.ts';

interface Page {
  readonly messages: readonly UIMessage[];
  readonly isIdle: boolean;
  /** Reads the newest message again, and what follows. */
  readonly resume: () => Promise<void>;
}

const LOOK_MS = 2_000;

/** While this page is idle, another tab may send a message: then it is shown here too. */
export function useMessagesOfOthers(
  threadId: string,
  { messages, isIdle, reload }: Page & { readonly reload: () => Promise<void> },
): void {
  const seen = useRef<string>(undefined);
  const own = messages.at(-1)?.id.slice(0, -2);
  // biome-ignore lint/correctness/useExhaustiveDependencies: reload is another function at each render
  useEffect(() => {
    if (!isIdle) return;
    const look = async () => {
      const newest = document.hidden ? undefined : await newestRun(threadId);
      if (isGone || newest === undefined || newest === own || newest === seen.current) return;
      seen.current = newest;
      await reload();
    };
    let isGone = false;
    const timer = setInterval(() => look().catch((error: unknown) => console.warn(error)), LOOK_MS);
    return () => {
      isGone = true;
      clearInterval(timer);
    };
  }, [threadId, own, isIdle]);
}

/** While this page shows an open question, another tab, or another person, may answer it: then the answer is shown here too. */
export function useAnswersOfOthers(client: Client, { messages, isIdle, resume }: Page): void {
  const last = messages.at(-1);
  const waitId = isIdle ? questionIn(last) : undefined;
  const runId = last?.id.slice(0, -2);
  // biome-ignore lint/correctness/useExhaustiveDependencies: resume is another function at each render
  useEffect(() => {
    if (waitId === undefined || runId === undefined) return;
    const left = new AbortController();
    settled(client, { runId, waitId, signal: left.signal }).then(
      (isSettled) => (isSettled ? resume() : undefined),
      (error: unknown) => console.warn(error),
    );
    return () => left.abort();
  }, [runId, waitId]);
}

function questionIn(message: UIMessage | undefined): string | undefined {
  for (const part of message?.parts ?? [])
    if (isToolUIPart(part) && part.state === 'approval-requested') return part.approval.id;
  return undefined;
}

interface Question {
  readonly runId: string;
  readonly waitId: string;
  readonly signal: AbortSignal;
}

/** Whether a question has an answer; false if the page left before. */
async function settled(client: Client, { runId, waitId, signal }: Question): Promise<boolean> {
  for await (const event of client.run(runId).events({ signal }))
    if (event.type === 'run.ended' || ('waitId' in event && event.waitId === waitId)) return true;
  return false;
}
