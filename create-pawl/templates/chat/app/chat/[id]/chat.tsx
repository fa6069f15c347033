'use client';
import { useChat } from '@ai-sdk/react';
import { isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai';
import { createClient } from 'pawl/client';
import { type FormEvent, useEffect, useState } from 'react';

/** Loads what was said before the page was opened, and shows the chat. */
export function Chat({ id }: { id: string }) {
  const [recorded, setRecorded] = useState<UIMessage[]>();
  useEffect(() => {
    loadMessages(id).then(setRecorded, console.error);
  }, [id]);
  return recorded ? <Conversation id={id} recorded={recorded} /> : <main />;
}

async function loadMessages(id: string): Promise<UIMessage[]> {
  const messages: UIMessage[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const response = await fetch(`/api/threads/${id}/messages?format=ui${after && `&after=${after}`}`);
    if (response.status === 404) return []; // a new chat
    if (!response.ok) throw new Error(`the server answered with ${response.status}`);
    const page: { items: UIMessage[]; next?: string } = await response.json();
    messages.push(...page.items);
    after = page.next;
  }
  return messages;
}

function Conversation({ id, recorded }: { id: string; recorded: UIMessage[] }) {
  // It connects again by itself when the server is gone for a while.
  const [transport] = useState(() => createClient({ url: '/api' }).chatTransport());
  const { messages, status, error, sendMessage, addToolApprovalResponse } = useChat({
    id,
    messages: recorded,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const isBusy = status === 'submitted' || status === 'streaming';

  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get('text')).trim();
    if (text === '' || isBusy) return;
    void sendMessage({ text });
    event.currentTarget.reset();
  };

  return (
    <main>
      <h1>Refund desk</h1>
      <ol>
        {messages.length === 0 && <li className="hint">Say for example: Refund order 7.</li>}
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, i) => {
              // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a message keep their places
              if (part.type === 'text') return <p key={i}>{part.text}</p>;
              if (!isToolUIPart(part) || !part.approval) return null;
              return <Card key={part.toolCallId} part={part} decide={addToolApprovalResponse} />;
            })}
          </li>
        ))}
        {error && <li className="hint">{error.message}</li>}
      </ol>
      <form onSubmit={send}>
        <input name="text" aria-label="Message" placeholder="Refund order …" autoComplete="off" />
        <button type="submit">Send</button>
      </form>
    </main>
  );
}

interface CardProps {
  part: Extract<UIMessage['parts'][number], { toolCallId: string }>;
  decide: (decision: { id: string; approved: boolean }) => unknown;
}

/** A call that a person decides about. */
function Card({ part: { state, approval, input }, decide }: CardProps) {
  if (!approval) return null;
  const { id, requestReason } = approval as { id: string; requestReason?: string };
  const isOpen = state === 'approval-requested';
  const outcome = state === 'output-available' ? 'Paid' : state === 'output-denied' ? 'Not paid' : 'On its way …';
  return (
    <section aria-label="Refund">
      <b>{isOpen ? (requestReason ?? 'Refund?') : outcome}</b>
      <code>{JSON.stringify(input)}</code>
      {isOpen && (
        <div>
          <button type="button" onClick={() => decide({ id, approved: true })}>
            Approve
          </button>
          <button type="button" className="plain" onClick={() => decide({ id, approved: false })}>
            Deny
          </button>
        </div>
      )}
    </section>
  );
}
