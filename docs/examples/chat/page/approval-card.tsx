import type { ToolUIPart } from 'ai';
import { useState } from 'react';

export interface Mail {
  readonly to?: string;
  readonly subject?: string;
  readonly body?: string;
}

/** A call of `send_mail`, as the page shows it. */
export type MailCall = ToolUIPart<{ send_mail: { input: Mail; output: string } }>;

export interface CardProps {
  readonly call: MailCall;
  readonly onDecision: (decision: { id: string; approved: boolean; reason?: string }) => void;
  /** Approves the mail as the person changed it. */
  readonly onEdit: (waitId: string, answer: { readonly input: { [name: string]: string } }) => Promise<void>;
}

/** A mail: the question whether it may leave, and then what became of it. */
export function ApprovalCard({ call, onDecision, onEdit }: CardProps) {
  const [edited, setEdited] = useState<Mail>();
  const { input, approval, state } = call;
  const mail: Mail = edited ?? input ?? {};
  const isOpen = state === 'approval-requested';
  return (
    <section className={`card ${state}`} aria-label="Mail">
      <h2>{isOpen ? (approval.requestReason ?? 'Send this mail?') : titleOf(call)}</h2>
      {(['to', 'subject', 'body'] as const).map((name) => (
        <Field
          key={name}
          name={name}
          text={mail[name] ?? ''}
          {...(edited && isOpen ? { onChange: (text: string) => setEdited({ ...mail, [name]: text }) } : {})}
        />
      ))}
      {isOpen && (
        <div className="buttons">
          <button
            type="button"
            onClick={() =>
              edited
                ? void onEdit(approval.id, { input: { ...edited } })
                : onDecision({ id: approval.id, approved: true })
            }
          >
            {edited ? 'Approve this version' : 'Approve'}
          </button>
          <button type="button" className="plain" onClick={() => onDecision({ id: approval.id, approved: false })}>
            Deny
          </button>
          <button type="button" className="plain" onClick={() => setEdited(edited ? undefined : (input ?? {}))}>
            {edited ? 'Do not edit' : 'Edit'}
          </button>
        </div>
      )}
    </section>
  );
}

interface FieldProps {
  readonly name: string;
  readonly text: string;
  readonly onChange?: (text: string) => void;
}

function Field({ name, text, onChange }: FieldProps) {
  const value = {
    'aria-label': name,
    value: text,
    onChange: (event: { target: { value: string } }) => onChange?.(event.target.value),
  };
  return (
    <div className={`field ${name}`}>
      <span className="name">{name}</span>
      {!onChange && <span className="text">{text}</span>}
      {onChange && (name === 'body' ? <textarea rows={6} {...value} /> : <input {...value} />)}
    </div>
  );
}

function titleOf({ state, ...call }: MailCall): string {
  switch (state) {
    case 'output-available':
      return 'Sent';
    case 'output-denied':
      return 'Not sent: you said no';
    case 'output-error':
      return `Not sent: ${'errorText' in call ? call.errorText : ''}`;
    case 'approval-responded':
      return 'Your answer is on its way …';
    default:
      return 'A mail …';
  }
}
