import type { UIMessage } from 'ai';

const path = (threadId: string) => `/api/threads/${encodeURIComponent(threadId)}`;

/** The messages of a conversation, as the server has recorded them; none if it does not exist yet. */
export async function loadMessages(threadId: string): Promise<UIMessage[]> {
  const messages: UIMessage[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const response = await fetch(`${path(threadId)}/messages?format=ui${after && `&after=${after}`}`);
    if (response.status === 404) return [];
    if (!response.ok) throw new Error(`the server answered with ${response.status}`);
    const page = (await response.json()) as { readonly items: readonly UIMessage[]; readonly next?: string };
    messages.push(...page.items);
    after = page.next;
  }
  return messages;
}

/** The run that a conversation began last; undefined if there is none, or no server. */
export async function newestRun(threadId: string): Promise<string | undefined> {
  try {
    const response = await fetch(path(threadId));
    if (!response.ok) return undefined;
    const { turns } = (await response.json()) as { readonly turns: readonly { readonly runId: string }[] };
    return turns[0]?.runId;
  } catch {
    return undefined;
  }
}
