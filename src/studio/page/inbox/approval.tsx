import { useState } from 'preact/hooks';
import type { AnswerView, JsonObject, JsonValue, WaitLine } from '../../wire.ts';
import { store } from '../frame/live.ts';
import { useShared } from '../frame/use-shared.ts';
import { words } from '../frame/words.ts';
import { Confirm } from '../parts/dialog.tsx';
import { Glyph } from '../parts/glyph.tsx';
import { Reason } from '../parts/reason.tsx';
import { say } from '../parts/say.tsx';
import { Copy, Mono } from '../parts/text.tsx';
import { As, ModEnter, type PartsProps, useModEnter } from './card-parts.tsx';
import { ExactInput } from './exact-input.tsx';
import { Form, useForm } from './form.tsx';
import { refusalsIn } from './form-fields.ts';
import { useKept } from './kept.ts';
import { isGiven, type StageAnswer } from './stages.ts';
import { type ApprovalWait, personText, type QuestionWait, voteText } from './waits.ts';

interface ApprovalProps extends PartsProps {
  readonly wait: ApprovalWait;
  /** The answer of this tab. */
  readonly own: StageAnswer | undefined;
  /** Those that the store holds, or held. */
  readonly answers: readonly AnswerView[];
  /** Of the input, if Studio knows the tool. */
  readonly schema: JsonObject | undefined;
}

/** A call that a person approves, changes or denies. */
export function ApprovalParts({ wait, own, answers, schema, canAnswer, isOpen, give, load, box }: ApprovalProps) {
  const [note, setNote] = useKept(wait.id, 'note');
  const long = wait.long?.input;
  const [isSeen, setSeen] = useState(wait.input === undefined && !long);
  const [isDenying, setDenying] = useState(false);
  const form = useForm([wait.id, 'edit'], wait.input, schema);
  // A part of an input cannot be changed.
  const edit = { ...form, isOn: form.isOn && !long };
  const said = note.trim() === '' ? {} : { note: note.trim() };
  const approve = () => {
    const filled = edit.isOn ? edit.read() : {};
    if (filled) void give({ how: 'approve', digest: wait.digest, ...said, ...filled });
  };
  useModEnter(box, () => {
    if (!canAnswer) return;
    if (isSeen || edit.isOn) approve();
    else say(words.stages?.toEnd ?? '');
  });
  const may = useShared(store)?.may.write === true;
  const isDenied = isGiven(own) && own.how === 'deny';
  const changed = changedInput(own, answers);
  const { stages = {} } = words;
  const plain = own?.call ? stages.ran : 'Exactly what will run';
  return (
    <>
      {changed !== undefined && <ExactInput title={stages.changed ?? ''} value={changed} />}
      {edit.isOn && isOpen ? (
        <Form {...edit} wrong={{ ...refusalsIn(edit.fields, own?.trouble?.message), ...edit.wrong }} />
      ) : (
        <ExactInput
          title={`${isDenied ? stages.notRun : changed === undefined ? plain : stages.unchanged}`}
          value={wait.input}
          long={long}
          onLoad={() => load('input')}
          onSeen={() => setSeen(true)}
        >
          {changed === undefined && !isDenied && <Digest of={wait.digest} />}
        </ExactInput>
      )}
      {(['modelInput', 'detail'] as const).map((part) => (
        <Fact key={part} wait={wait} part={part} load={load} />
      ))}
      {wait.quorum > 1 && <Votes wait={wait} />}
      {isOpen && may && (
        <>
          <section>
            <Reason label={stages.note ?? ''} text={note} onType={setNote} />
          </section>
          <Buttons
            canAnswer={canAnswer}
            isEditable={wait.editable && !long}
            isEditing={edit.isOn}
            onApprove={approve}
            onEdit={edit.toggle}
            onDeny={() => setDenying(true)}
          />
        </>
      )}
      {isDenying && (
        <Deny
          wait={wait}
          onYes={(reason) => void give({ how: 'deny', digest: wait.digest, ...(reason === '' ? {} : { reason }) })}
          onClose={() => setDenying(false)}
        />
      )}
    </>
  );
}

/** What a person put in place of the input, as long as it is short enough to be shown. */
function changedInput(own: StageAnswer | undefined, answers: readonly AnswerView[]): JsonValue | undefined {
  const sent = own?.trouble ? undefined : own?.input;
  return sent ?? answers.find(({ how, input }) => how === 'approve' && input)?.input?.value;
}

interface FactProps extends Pick<ApprovalProps, 'wait' | 'load'> {
  readonly part: 'modelInput' | 'detail';
}

function Fact({ wait, part, load }: FactProps) {
  const title = part === 'detail' ? 'Details' : words.stages?.changedBy + personText(wait.changedBy);
  return <ExactInput title={title} value={wait[part]} long={wait.long?.[part]} onLoad={() => load(part)} />;
}

interface ButtonsProps {
  readonly canAnswer: boolean;
  readonly isEditable: boolean;
  readonly isEditing: boolean;
  onApprove(): void;
  onEdit(): void;
  onDeny(): void;
}

function Buttons({ canAnswer, isEditable, isEditing, onApprove, onEdit, onDeny }: ButtonsProps) {
  return (
    <footer>
      <button type="button" class="primary" disabled={!canAnswer} onClick={onApprove}>
        {isEditing ? 'Approve this version ' : 'Approve '}
        <ModEnter />
      </button>
      {isEditable && (
        <button type="button" disabled={!canAnswer} onClick={onEdit}>
          {isEditing ? 'Cancel edit' : 'Edit…'}
        </button>
      )}
      <button type="button" class="danger" disabled={!canAnswer} onClick={onDeny}>
        Deny…
      </button>
      <As />
    </footer>
  );
}

function Digest({ of }: { readonly of: string }) {
  return (
    <p class="faint digest">
      Digest <Mono text={`${of.slice(0, 4)}·${of.slice(4, 8)}`} />
      {words.stages?.digest} <Copy text={of} name="Copy digest" />
    </p>
  );
}

/** Who has given which vote, where others must give theirs. */
export function Votes({ wait: { quorum = 1, votes = [] } }: { readonly wait: ApprovalWait | QuestionWait }) {
  return (
    <section>
      <h2>{`Needs ${quorum} persons · ${votes.length} given`}</h2>
      <ul class="done-steps">
        {votes.map((vote) => (
          <li key={vote.by.id}>
            <Glyph state="ok" />
            <span>{voteText(vote)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface DenyProps {
  readonly wait: WaitLine;
  onYes(reason: string): void;
  onClose(): void;
}

function Deny({ wait, onYes, onClose }: DenyProps) {
  const [reason, setReason] = useKept(wait.id, 'reason');
  return (
    <Confirm title="Deny this call?" yes="Deny" onYes={() => onYes(reason.trim())} onClose={onClose}>
      <p>
        <Mono text={wait.tool ?? ''} /> of run <Mono text={wait.runId} /> will not run.
      </p>
      <Reason label={words.stages?.why ?? ''} text={reason} onType={setReason} />
    </Confirm>
  );
}
