import { type CommandRow, STORE } from './row.ts';

/** The commands for runs that wait, and for those that are set aside. */
export const waitCommands = {
  waiting: {
    takes: '[run id]',
    does: 'what runs wait for: approvals, questions, events, times',
    about: `Lists what runs wait for: an approval, an answer to a question, an event, a time, a child run, or a model that is away. With
the call and its input, who has voted, when the wait ends by itself, and the commands that answer. With an id: the waits of
this run and of the runs below it. What needs a person comes first. A run that waits needs no process.`,
    options: {
      'older-than': 'only waits that began so long ago: 2h, 3d',
      store: STORE,
      json: `{ store, waits: [{ runId, rootRunId, path, agentId, callerId, labels, id, kind, createdAt, dueAt?, step,
callId?, tool?, input?, … }] }; of an approval { digest, prompt?, detail?, quorum, votes, editable, onExpiry },
of a question { question, options?, schema? }`,
    },
    examples: [
      'pawl waiting',
      'pawl waiting --older-than 1d',
      `pawl waiting --json | jq -r '.waits[] | select(.kind == "approval") | .runId'`,
    ],
    load: async () => (await import('../commands/waits/waiting-command.ts')).waitingCommand,
  },
  approve: {
    takes: '<run id> [wait id]',
    does: 'allow a call that waits for it',
    about: `Allows a call that waits for an approval. The beginning of the wait's id is enough; without it, the run must wait for one
approval. A call that has changed since is not approved. The first recorded answer stands. This command starts no run: the process
that has the run continues it within a second, or the next \`pawl resume\` or \`pawl recover\` does.`,
    options: {
      by: 'who approves; needed where several must approve, or the tool checks who may',
      note: 'a note for those who read the decision later: the record and the events keep it, the model does not read it',
      input: 'the input as you change it, if the tool allows that',
      digest: 'that of the wait as you saw it (`pawl waiting`); default: of the wait as it is now',
      store: STORE,
      json: `{ runId, waitId, status: 'recorded' | 'sent' | 'pending' }; sent: the process that has the run reads it, now or
later; pending: it may refuse it`,
    },
    more: `Exit code 2: the run does not wait for this, or an answer that ends the wait was first. Behind one that the run may refuse (a
changed input, a tool with \`approvers\`) this answer is stored too, with exit code 0.`,
    examples: [
      'pawl approve refund-7 --by ada --note "checked with the customer"',
      `pawl approve refund-7 3f2a --input '{ "cents": 500 }'`,
    ],
    load: async () => (await import('../commands/waits/answer-command.ts')).approveCommand,
  },
  deny: {
    takes: '<run id> [wait id]',
    does: 'refuse a call that waits for an approval',
    about: `Refuses a call that waits for an approval: it does not start, and the model reads the reason. One denial decides. Otherwise as
\`pawl approve\`.`,
    options: {
      reason: 'the reason, for the model',
      by: 'who denies',
      store: STORE,
      json: "{ runId, waitId, status: 'recorded' | 'sent' | 'pending' }",
    },
    examples: ['pawl deny refund-7 --reason "The order was never paid"'],
    load: async () => (await import('../commands/waits/answer-command.ts')).denyCommand,
  },
  answer: {
    takes: '<run id> [wait id] <value>',
    does: 'answer a question of a run',
    about: `Answers a question of a run. The value is JSON; a text that is not JSON, or that the question offers as an option, is taken as
it is. It must fit the question. Otherwise as \`pawl approve\`.`,
    options: {
      by: 'who answers',
      store: STORE,
      json: "{ runId, waitId, status: 'recorded' | 'sent' | 'pending' }",
    },
    examples: ['pawl answer survey-7 "the second one"', `pawl answer survey-7 3f2a '{ "city": "Graz" }'`],
    load: async () => (await import('../commands/waits/answer-command.ts')).answerCommand,
  },
  signal: {
    takes: '<event> <value>',
    does: 'send an event to the run that waits for it',
    about: `Sends an event to the oldest wait for it (\`context.waitFor\`). If no run waits for it, it is kept for a day for the next one. A
signal serves one wait. The value is JSON; a text that is not JSON is taken as it is.`,
    options: {
      key: 'tells events of one name apart, for example the number of an order',
      id: 'names the signal: sent twice with the same id, it counts once; default: a random id',
      store: STORE,
      json: '{ name, key, id, to: the id of the run that got it, or null }',
    },
    examples: [`pawl signal payment '{ "cents": 700 }' --key "order 7" --id webhook-123`],
    load: async () => (await import('../commands/waits/signal-command.ts')).signalCommand,
  },
  send: {
    takes: '<run id> <type>',
    does: 'send an event to the machine of a workflow',
    about: `Sends an event to the machine of a workflow: its state takes it or ignores it, as XState does. \`pawl show\` says in which state
the machine is. This command starts no run: the process that has the run reads the event, now or later.`,
    options: {
      data: "the event's other fields: a JSON object",
      agent:
        'the module of the workflow: its schemas check the event here. Without it the process that has the run does',
      id: 'names the event: sent twice with the same id, it counts once; default: a random id',
      store: STORE,
      json: "{ runId, type, id, status: 'recorded' | 'sent' }; sent: the process that has the run reads it, now or later",
    },
    examples: [`pawl send refund-42 cancel --data '{ "by": "ada" }' --id click-7`],
    load: async () => (await import('../commands/waits/send-command.ts')).sendEventCommand,
  },
  park: {
    takes: '<run id> [reason]',
    does: 'set a run aside, so that no process continues it',
    about: `Sets an interrupted run aside: \`pawl resume\` and every \`recover()\` skip it until it is unparked. A run that a process works
on is not parked.`,
    options: {
      store: STORE,
      json: "{ runId, status: 'parked' }",
    },
    examples: ['pawl park nightly-2026-11-21 "the customer already knows"'],
    load: async () => (await import('../commands/park-command.ts')).parkCommand,
  },
  unpark: {
    takes: '<run id>',
    usage: ['pawl unpark <run id> [options]', 'pawl unpark --code <code> [options]'],
    does: 'release a parked run, or all that were parked for one reason',
    about: `Releases a parked run and resets its attempts, so that it can be resumed. A run that is not parked does not change. A run that
was parked because its agent's phases had changed needs the former phases: with others, its next start parks it
again.

With --code and no id all parked runs with that code are released, one after the other. The command says how many there are, and wants --yes.
It may be interrupted and repeated.`,
    options: {
      code: 'all runs that are parked with this code, for example SETUP',
      'agent-id': 'with --code: only runs of this agent',
      label: 'with --code: only runs with this label, for example tenant=acme',
      'older-than': 'with --code: only runs that recorded nothing for this time, for example 2h',
      'dry-run': 'with --code: list them only',
      yes: 'with --code: release them without a question',
      by: 'who releases them: the journal keeps it',
      store: STORE,
      json: "{ runId, status: 'interrupted' }; with --code { runIds, unparked, failed: [{ runId, reason }] }",
    },
    examples: [
      'pawl unpark --code SETUP --agent-id clerk --dry-run',
      'pawl unpark nightly-2026-11-21',
      'pawl unpark nightly-2026-11-21 && pawl resume nightly-2026-11-21',
    ],
    load: async () => (await import('../commands/park-command.ts')).unparkCommand,
  },
} satisfies Readonly<Record<string, CommandRow>>;
