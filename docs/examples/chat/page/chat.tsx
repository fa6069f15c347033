import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai';
import { createClient } from 'pawl/client';
import { useEffect, useMemo, useRef } from 'react';
import { Composer } from './composer.tsx';
import { loadMessages } from './history.ts';
import { Message } from './message.tsx';
import { useAnswersOfOthers, useMessagesOfOthers } from './other-tabs.ts';

const client = createClient({ url: '/api' });
const pawl = client.chatTransport();

interface ChatProps {
  readonly id: string;
  /** What was said before the page was opened. */
  readonly recorded: UIMessage[];
  /** With the transport of the AI SDK: after a lost connection the page must be loaded again. */
  readonly isStock: boolean;
}

/** One conversation. */
export function Chat({ id, recorded, isStock }: ChatProps) {
  const transport = useMemo(
    () => (isStock ? new DefaultChatTransport<UIMessage>({ api: '/api/chat' }) : pawl),
    [isStock],
  );
  const chat = useChat({
    id,
    messages: recorded,
    transport,
    resume: true, // the newest message once more, with what follows
    throttle: 50,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const { messages, status, error, sendMessage, addToolApprovalResponse, resumeStream, setMessages } = chat;
  const page = { messages, isIdle: status === 'ready', resume: resumeStream };
  useAnswersOfOthers(client, page);
  useMessagesOfOthers(id, {
    ...page,
    reload: async () => {
      setMessages(await loadMessages(id));
      await resumeStream();
    },
  });
  const isBusy = status === 'submitted' || status === 'streaming';

  return (
    <main>
      <header>
        <h1>Mails</h1>
        <a href="/">New conversation</a>
      </header>
      <ol className="messages">
        {messages.length === 0 && <li className="hint">Say for example: Write a mail to ada@example.com</li>}
        {messages.map((message) => (
          <Message
            key={message.id}
            message={message}
            onDecision={(decision) => void addToolApprovalResponse(decision)}
            onEdit={async (waitId, answer) => {
              await client.run(message.id.slice(0, -2)).approve(waitId, answer);
              await resumeStream();
            }}
          />
        ))}
        {status === 'submitted' && <li className="hint">…</li>}
        {error && (
          <li className="error">
            The connection is lost.{' '}
            <button type="button" onClick={() => location.reload()}>
              Reload
            </button>
          </li>
        )}
      </ol>
      <End of={messages} />
      <Composer isBusy={isBusy} onSend={(text) => void sendMessage({ text })} onStop={() => void pawl.stop(id)} />
    </main>
  );
}

/** Keeps the end in view while an answer grows. */
function End({ of }: { readonly of: unknown }) {
  const end = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls when the messages change
  useEffect(() => void end.current?.scrollIntoView({ block: 'end' }), [of]);
  return <div ref={end} className="end" />;
}
