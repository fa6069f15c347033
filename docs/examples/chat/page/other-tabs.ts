import type { UIMessage } from 'ai';
import { isToolUIPart } from 'ai';
import type { Client } from 'pawl/client';
import { useEffect } from 'react';

interface Page {
  readonly messages: readonly UIMessage[];
  readonly isIdle: boolean;
  /** Reads the newest message again, and what follows. */
  readonly resume: () => Promise<void>;
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
