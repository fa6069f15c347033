import type { JsonValue } from '../../wire.ts';
import { store } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { Votes } from './approval.tsx';
import { As, ModEnter, type PartsProps, useModEnter } from './card-parts.tsx';
import { ExactInput } from './exact-input.tsx';
import { Form, useForm } from './form.tsx';
import type { QuestionWait } from './waits.ts';

/** A question, and its answer: an option, a form, or a text. */
export function QuestionParts({
  wait,
  canAnswer,
  isOpen,
  give,
  load,
  box,
}: PartsProps & { readonly wait: QuestionWait }) {
  const { options, schema } = wait;
  const choices = options?.length ? { enum: options } : undefined;
  const form = useForm([wait.id, 'answer'], undefined, choices ?? schema ?? { type: 'string' });
  const answer = () => {
    const filled = form.read();
    if (filled && filled.input !== '') void give({ how: 'answer', value: filled.input });
  };
  useModEnter(box, () => {
    if (canAnswer) answer();
  });
  const mayWrite = useShared(store)?.may.write;
  const given = (wait.quorum ?? 1) > 1 && <Votes wait={wait} />;
  if (!isOpen || !mayWrite) return given || null;
  const long = (['options', 'schema'] as const).filter((part) => wait.long?.[part]);
  if (long.length > 0)
    return long.map((part) => (
      <ExactInput
        key={part}
        title={`The ${part} of the answer`}
        value={undefined}
        long={wait.long?.[part]}
        onLoad={() => load(part)}
      />
    ));
  return (
    <>
      {given}
      {options?.length ? (
        <Options options={options} chosen={form.typed[''] ?? ''} onChoose={(text) => form.onType({ '': text })} />
      ) : (
        <Form {...form} />
      )}
      <footer>
        <button type="button" class="primary" disabled={!canAnswer} onClick={answer}>
          Answer <ModEnter />
        </button>
        <As />
      </footer>
    </>
  );
}

interface OptionsProps {
  readonly options: readonly JsonValue[];
  readonly chosen: string;
  onChoose(text: string): void;
}

function Options({ options, chosen, onChoose }: OptionsProps) {
  return (
    <section>
      <fieldset class="options">
        <legend>Choose one</legend>
        {options.map((option) => {
          const text = JSON.stringify(option, null, 2);
          return (
            <label key={text}>
              <input type="radio" name="option" checked={text === chosen} onChange={() => onChoose(text)} />
              <span>{typeof option === 'string' ? option : text}</span>
            </label>
          );
        })}
      </fieldset>
    </section>
  );
}

/** An event that a run waits for: no person can answer it here. */
export function EventParts({ name, eventKey }: { readonly name: string; readonly eventKey: string }) {
  const key = JSON.stringify(eventKey);
  return (
    <section>
      <span class="faint">{words.stages?.signals}</span>
      <pre>{`await executor.signal(${JSON.stringify(name)}, value, { key: ${key}, id })`}</pre>
    </section>
  );
}
