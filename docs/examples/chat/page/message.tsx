import { isToolUIPart, type UIMessage } from 'ai';
import { ApprovalCard, type CardProps, type MailCall } from './approval-card.tsx';

type MessageProps = Pick<CardProps, 'onDecision' | 'onEdit'> & { readonly message: UIMessage };

/** One message: its texts, and a card for each mail. */
export function Message({ message, onDecision, onEdit }: MessageProps) {
  return (
    <li className={`message ${message.role}`} data-id={message.id}>
      {message.parts.map((part, i) => {
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a message keep their places
        if (part.type === 'text') return <p key={i}>{part.text}</p>;
        if (!isToolUIPart(part)) return null;
        return <ApprovalCard key={part.toolCallId} call={part as MailCall} onDecision={onDecision} onEdit={onEdit} />;
      })}
    </li>
  );
}
