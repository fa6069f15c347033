import { useState } from 'preact/hooks';
import type { JsonObject, JsonValue } from '../../wire.ts';
import { type FormField, fieldsOf, filledOf, jsonOfField, type Typed, typedOf } from './form-fields.ts';
import { useKept } from './kept.ts';

interface FormProps {
  readonly fields: readonly FormField[];
  readonly typed: Typed;
  /** What it began with. */
  readonly was: Typed;
  readonly wrong: Typed;
  onType(typed: Typed): void;
}

/** A form: a control for each field, and beside it what is wrong. */
export function Form({ fields, typed, was, wrong, onType }: FormProps) {
  return (
    <section class="form">
      {fields.map((field, at) => (
        <div key={field.name} class="field">
          <label htmlFor={`field-${at}`}>
            {field.name || 'Value'}
            {field.kind === 'json' && ' · JSON'}
            {field.help !== undefined && ` · ${field.help}`}
          </label>
          <Control
            id={`field-${at}`}
            field={field}
            text={typed[field.name] ?? ''}
            isWrong={wrong[field.name] !== undefined}
            onType={(text) => onType({ ...typed, [field.name]: text })}
          />
          {was[field.name] && was[field.name] !== typed[field.name] && <span>Before: {was[field.name]}</span>}
          {wrong[field.name] !== undefined && (
            <span class="fail" role="alert">
              {wrong[field.name]}
            </span>
          )}
        </div>
      ))}
    </section>
  );
}

interface ControlProps {
  readonly id: string;
  readonly field: FormField;
  readonly text: string;
  readonly isWrong: boolean;
  onType(text: string): void;
}

function Control({ id, field: { kind, choices, isRequired }, text, isWrong, onType }: ControlProps) {
  const own = {
    id,
    value: text,
    'aria-invalid': isWrong,
    onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) => onType(currentTarget.value),
  };
  if (kind === 'flag' || kind === 'choice') {
    const all = (kind === 'flag' ? [true, false] : choices).map((choice) => [jsonOfField(choice), choice] as const);
    return (
      <select {...own}>
        {(!isRequired || text === '') && <option value="">—</option>}
        {all.map(([value, choice]) => (
          <option key={value} value={value}>
            {typeof choice === 'string' ? choice : value}
          </option>
        ))}
      </select>
    );
  }
  if (kind === 'number' || kind === 'integer') return <input inputMode="decimal" {...own} />;
  return <textarea rows={Math.min(14, Math.max(kind === 'json' ? 3 : 1, text.split('\n').length))} {...own} />;
}

/** A form whose texts stay over a reload. @param before the value that it begins with */
export function useForm(kept: readonly [of: string, name: string], before: JsonValue | undefined, schema?: JsonObject) {
  const fields: readonly FormField[] = fieldsOf(schema, before);
  const [text, setText] = useKept(...kept);
  const [wrong, setWrong] = useState<Typed>({});
  const was = typedOf(fields, before);
  const typed = text === '' ? was : typedIn(text);
  const onType = (next: Typed) => setText(JSON.stringify(next));
  const read = (): { readonly input: JsonValue } | undefined => {
    const filled = filledOf(fields, typed, before);
    setWrong(filled.wrong ?? {});
    return filled.wrong ? undefined : { input: filled.value };
  };
  const toggle = () => (text === '' ? onType(typed) : setText(''));
  return { fields, typed, was, wrong, onType, read, toggle, isOn: text !== '' };
}

function typedIn(text: string): Typed {
  try {
    return JSON.parse(text) as Typed;
  } catch {
    return {};
  }
}
