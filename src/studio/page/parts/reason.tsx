interface ReasonProps {
  /** What is asked for, and who reads it. */
  readonly label: string;
  readonly text: string;
  onType(text: string): void;
}

/** The longest text that an answer takes, UTF-16 units. */
const MAX_CHARS = 4_096;

/** A few words that go with an action; none are needed. */
export function Reason({ label, text, onType }: ReasonProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <textarea
        rows={2}
        maxLength={MAX_CHARS}
        placeholder="Optional"
        value={text}
        onInput={({ currentTarget }) => onType(currentTarget.value)}
      />
    </label>
  );
}
