import { type FormEvent, useState } from 'react';

interface ComposerProps {
  readonly isBusy: boolean;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

/** Where the person writes; a stop while the agent answers. */
export function Composer({ isBusy, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim() === '' || isBusy) return;
    onSend(text.trim());
    setText('');
  };
  return (
    <form className="composer" onSubmit={submit}>
      <input
        aria-label="Message"
        placeholder="Write a mail to …"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {isBusy ? (
        <button type="button" className="stop" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit">Send</button>
      )}
    </form>
  );
}
