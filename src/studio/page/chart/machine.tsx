import { useState } from 'preact/hooks';
import type { MachineView } from '../../wire.ts';
import { pathOf, post, type Trouble } from '../frame/api.ts';
import { store, useCanWrite } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';
import { Failed } from '../parts/empty.tsx';
import { Pairs } from '../parts/lists.tsx';
import { say } from '../parts/say.tsx';
import { Mono } from '../parts/text.tsx';
import { activePaths, type MachineFacts, stateWords } from './machine-model.ts';

interface MachineProps {
  readonly runId: string;
  readonly machine: MachineView;
  readonly facts: MachineFacts;
}

/** The machine of a workflow: its states, what it takes, its timers and its open calls. */
export function Machine({ runId, machine, facts }: MachineProps) {
  const { state, states = [], timers, calls } = machine;
  const { last } = facts;
  const timer = ({ sendId, dueAt }: MachineView['timers'][number]) =>
    `${sendId}: ${dueAt === undefined ? 'due' : new Date(dueAt).toLocaleString('en-GB')}`;
  return (
    <section aria-label="Chart">
      <div class="sec">
        <h2>Machine</h2>
      </div>
      <div class="in">
        <Pairs
          of={[
            ['State', <Mono key="state" text={stateWords(state) || 'it has not begun'} />],
            last && ['Last', <Mono key="last" text={`${last.event}: ${last.from || 'the beginning'} → ${last.to}`} />],
            timers.length > 0 && ['Timers', <Mono key="timers" text={timers.map(timer).join(', ')} />],
            calls.length > 0 && [
              'Calls',
              <Mono
                key="calls"
                text={calls.map((call) => `${call.actorId} (${call.name}): ${call.state}`).join(', ')}
              />,
            ],
          ]}
        />
        <Events runId={runId} takes={machine.takes} />
        <States of={states} above="" active={new Set(activePaths(state))} visits={facts.visits} />
      </div>
    </section>
  );
}

interface StatesProps {
  readonly of: NonNullable<MachineView['states']>;
  readonly above: string;
  readonly active: ReadonlySet<string>;
  readonly visits: MachineFacts['visits'];
}

function States({ of: states, above, active, visits }: StatesProps) {
  if (states.length === 0) return null;
  return (
    <ul aria-label={above === '' ? 'States of the workflow' : undefined}>
      {states.map(({ key, type, description, states: inner }) => {
        const path = above + key;
        const count = visits[path] ?? 0;
        return (
          <li key={key} title={description} aria-current={active.has(path) ? 'step' : undefined}>
            {active.has(path) ? <b>{key}</b> : key}
            <span class="faint">
              {type === 'atomic' || type === 'compound' ? '' : ` ${type}`}
              {count > 0 ? ` ×${count}` : ''}
            </span>
            <States of={inner} above={`${path}.`} active={active} visits={visits} />
          </li>
        );
      })}
    </ul>
  );
}

/** A button for each type of event that the state takes, for a person who may write. A wildcard has none. */
function Events({ runId, takes = [] }: { readonly runId: string; readonly takes: MachineView['takes'] }) {
  const canWrite = useCanWrite();
  const [isSending, setSending] = useState(false);
  const [trouble, setTrouble] = useState<Trouble>();
  const mayWrite = useShared(store)?.may.write;
  const send = async (type: string) => {
    setSending(true);
    const answer = await post(pathOf('runs', runId, 'events'), { event: { type } });
    setSending(false);
    setTrouble(answer.trouble);
    if (!answer.trouble) say(`The event ${type} is sent.`);
  };
  if (!mayWrite) return takes.length === 0 ? null : <p class="dim">Takes {takes.join(', ')}</p>;
  return (
    <p class="buttons">
      {takes
        .filter((type) => !type.includes('*'))
        .map((type) => (
          <button key={type} type="button" disabled={!canWrite || isSending} onClick={() => void send(type)}>
            <Mono text={type} />
          </button>
        ))}
      {trouble && <Failed trouble={trouble} />}
    </p>
  );
}
