import { useState } from 'preact/hooks';
import type { JsonObject, MachineView } from '../../wire.ts';
import { pathOfApi, post, type Trouble } from '../frame/api.ts';
import { store, useCanWrite } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';
import { Form, useForm } from '../inbox/form.tsx';
import { dropKept } from '../inbox/kept.ts';
import { Failed } from '../parts/empty.tsx';
import { say } from '../parts/say.tsx';
import { Mono } from '../parts/text.tsx';

interface EventsProps {
  readonly runId: string;
  readonly machine: MachineView;
}

/** A button for each type of event that the state takes, for a person who may write. A wildcard has none. */
export function Events({ runId, machine: { takes = [], eventSchemas } }: EventsProps) {
  const [open, setOpen] = useState<string>();
  const types = takes.filter((type) => !type.includes('*'));
  if (!useShared(store)?.may.write) return takes.length === 0 ? null : <p class="dim">Takes {takes.join(', ')}</p>;
  return (
    <>
      <p class="buttons">
        {types.map((type) => (
          <button
            key={type}
            type="button"
            aria-expanded={type === open}
            onClick={() => setOpen(type === open ? undefined : type)}
          >
            <Mono text={type} />
          </button>
        ))}
      </p>
      {open !== undefined && types.includes(open) && (
        <EventForm
          key={open}
          runId={runId}
          type={open}
          schema={eventSchemas?.[open]}
          close={() => setOpen(undefined)}
        />
      )}
    </>
  );
}

interface EventFormProps {
  readonly runId: string;
  readonly type: string;
  readonly schema?: JsonObject | undefined;
  close(): void;
}

/** The fields of an event: by its schema, else as JSON. What the server refuses is said beside them. */
function EventForm({ runId, type, schema, close }: EventFormProps) {
  const canWrite = useCanWrite();
  const kept = [`${runId} ${type}`, 'event'] as const;
  const form = useForm(kept, schema ? undefined : {}, schema);
  const [isSending, setSending] = useState(false);
  const [trouble, setTrouble] = useState<Trouble>();
  const send = async () => {
    const filled = form.read();
    if (!filled) return;
    setSending(true);
    const answer = await post(pathOfApi('runs', runId, 'events'), {
      event: { ...(filled.input as object), type },
      mustTake: true,
    });
    setSending(false);
    setTrouble(answer.trouble);
    if (answer.trouble) return;
    dropKept(kept[0]);
    say(`The event ${type} is sent.`);
    close();
  };
  return (
    <div class="event">
      <Form {...form} />
      {trouble && <Failed trouble={trouble} />}
      <button type="button" class="primary" disabled={!canWrite || isSending} onClick={() => void send()}>
        Send <Mono text={type} />
      </button>
    </div>
  );
}
