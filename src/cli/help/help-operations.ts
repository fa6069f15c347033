// The help pages of the commands that control runs: recover, work, cancel, steer, the answers to waits, park, unpark,
// doctor, prune.

/** The help text of `pawl recover`. */
export const recover = `Usage: pawl recover [agent module…] [options]

Continues all interrupted runs, each from its last recorded step. With agent modules: the runs of these agents, no matter
which program started them; without: those that this user started on this machine, each with its module; others need theirs.
Importing a module runs its top level. Runs that are live elsewhere or parked do not change. Runs of sub-agents are continued
by their parent runs; if the top run is gone, they are cancelled, without their agents and without another model call. A
run that its next start may park continues last, alone.

Exit code 0: all went well, 1: a run failed, or needs a person; \`pawl doctor\` says which before anything is started.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   where runs are remembered when their records are gone, as of \`pawl run\`
  --json           JSON lines on stdout, as of \`pawl resume\`

Examples:
  pawl recover
  pawl recover agents/clerk.ts agents/critic.ts --store /var/lib/pawl/runs.db
`;

/** The help text of `pawl work`. */
export const work = `Usage: pawl work <agent module> [options]

Takes due runs of one agent from the store and works on them, beside any other processes that do the same, until it is stopped.
Runs come from programs that admit them (\`start\` with drive: 'later'), from interrupted ones, and from runs that wake. The agent
module is one as of \`pawl run\`. With several processes use a store in PostgreSQL; a SQLite file serves those of one host.

SIGTERM or Ctrl-C: it takes nothing more, and ends its runs between two calls. Calls under way have the time of --drain: those of
models three quarters of it. The runs continue in other processes. A second signal exits now, as after a crash.

Options:
  --concurrency <n>   how many runs it works on at once; default 16
  --fair-by <label>   the runs of each value of this label take turns. Give all processes the same
  --per-key <n>       at most so many runs of one value at once; needs --fair-by
  --deployment <n>    the number of the release, higher for each: a run that a higher one took is left alone by lower ones
  --budget <time>     how long it works on a run before it leaves it to any process; default 10m
  --listen            PostgreSQL only: what admits a run wakes it at once (postgresStore({ notify: true })); else it asks each second
  --drain <time>      longest time to leave its runs after a signal; default 25s
  --store <store>     the store; else $PAWL_STORE, else .pawl/runs.db. Made if it does not exist
  --audit <file>      where runs are remembered when their records are gone, as of \`pawl run\`
  --json              JSON lines on stdout: { type: 'work.started', agentId, store, concurrency }, for each run that it takes
                      { type: 'run.started' | 'run.resumed', runId }, { type: 'step.done', runId, iteration, tools, usage },
                      { type: 'run.waiting', runId, waits, wakeAt? }, { type: 'run.parked', runId, code, reason },
                      { type: 'run.ended', runId, status, output, error? } with the status interrupted for one that it left,
                      { type: 'work.draining', live, drainMs } at a signal, and { type: 'work.ended', taken, ended, live }

Exit codes: 0 stopped, all runs left or ended · 1 some could not be left in time: they continue when their leases end · 2 bad input,
nothing was done · 130 a second signal

Examples:
  pawl work agent.ts --store postgres://app@db/app --listen --concurrency 32
  pawl work agent.ts --fair-by tenant --per-key 4 --deployment 42
`;

/** The help text of `pawl cancel`. */
export const cancel = `Usage: pawl cancel <run id> [options]

Ends a run permanently: at once if it waits or is parked; within about a second if it is live in another process. To cancel a
sub-agent's run, cancel its parent run; if the parent only waits, the next \`pawl recover\` ends its children. A host's
\`onOutcome\` gets the end about a second later, in a process that has the agent.

Options:
  --reason <text>  the reason, part of its result
  --wait <time>    how long to wait for a live run to end; default 10s. After that, exit code 1: the command stays with the run
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store when it is there
  --json           { runId, status: 'cancelled' | 'ended' | 'waiting' }; ended: it had already ended in another way. A second
                   cancel gives 'cancelled' again; exit code 0 for both

Examples:
  pawl cancel nightly-2026-11-21 --reason "the customer called"
`;

/** The help text of `pawl steer`. */
export const steer = `Usage: pawl steer <run id> <text> [options]

Sends a message to the model of a run before its next turn. A run that is live in another process gets it within a second; a
run that waits gets it when it continues.

Options:
  --wait <time>    how long to wait until a live run has the message; default 10s. After that, exit code 1: the message stays
                   with the run
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, status: 'heard' | 'kept' | 'waiting' | 'ended' }; kept: until the run continues; ended: perhaps
                   without the message

Examples:
  pawl steer nightly-2026-11-21 "Leave the archive alone"
`;

/** The help text of `pawl waiting`. */
export const waiting = `Usage: pawl waiting [run id] [options]

Lists what runs wait for: an approval, an answer to a question, an event, a time, a child run, or a model that is away. With
the call and its input, who has voted, when the wait ends by itself, and the commands that answer. With an id: the waits of
this run and of the runs below it. A run that waits needs no process.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { store, waits: [{ runId, rootRunId, path, agentId, callerId, labels, id, kind, createdAt, dueAt?, step,
                   callId?, tool?, input?, … }] }; of an approval { digest, prompt?, detail?, quorum, votes, editable, onExpiry },
                   of a question { question, options?, schema? }

Examples:
  pawl waiting
  pawl waiting --json | jq -r '.waits[] | select(.kind == "approval") | .runId'
`;

/** The help text of `pawl approve`. */
export const approve = `Usage: pawl approve <run id> [wait id] [options]

Allows a call that waits for an approval. The beginning of the wait's id is enough; without it, the run must wait for one
approval. A call that has changed since is not approved. The first recorded answer stands. This command starts no run: the process
that has the run continues it within a second, or the next \`pawl resume\` or \`pawl recover\` does.

Options:
  --by <id>        who approves; needed where several must approve, or the tool checks who may
  --note <text>    a note in the record, for those who read it later
  --input <json>   the input as you change it, if the tool allows that
  --digest <hash>  that of the wait as you saw it (\`pawl waiting\`); default: of the wait as it is now
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, waitId, status: 'recorded' | 'sent' | 'pending' }; sent: the process that has the run reads it, now or
                   later; pending: it may refuse it

Exit code 2: the run does not wait for this, or an answer that ends the wait was first. Behind one that the run may refuse (a
changed input, a tool with \`approvers\`) this answer is stored too, with exit code 0.

Examples:
  pawl approve refund-7 --by ada --note "checked with the customer"
  pawl approve refund-7 3f2a --input '{ "cents": 500 }'
`;

/** The help text of `pawl deny`. */
export const deny = `Usage: pawl deny <run id> [wait id] [options]

Refuses a call that waits for an approval: it does not start, and the model reads the reason. One denial decides. Otherwise as
\`pawl approve\`.

Options:
  --reason <text>  the reason, for the model
  --by <id>        who denies
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, waitId, status: 'recorded' | 'sent' | 'pending' }

Examples:
  pawl deny refund-7 --reason "The order was never paid"
`;

/** The help text of `pawl answer`. */
export const answer = `Usage: pawl answer <run id> [wait id] <value> [options]

Answers a question of a run. The value is JSON; a text that is not JSON, or that the question offers as an option, is taken as
it is. It must fit the question. Otherwise as \`pawl approve\`.

Options:
  --by <id>        who answers
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, waitId, status: 'recorded' | 'sent' | 'pending' }

Examples:
  pawl answer survey-7 "the second one"
  pawl answer survey-7 3f2a '{ "city": "Graz" }'
`;

/** The help text of `pawl signal`. */
export const signal = `Usage: pawl signal <event> <value> [options]

Sends an event to the oldest wait for it (\`context.waitFor\`). If no run waits for it, it is kept for a day for the next one. A
signal serves one wait. The value is JSON; a text that is not JSON is taken as it is.

Options:
  --key <key>      tells events of one name apart, for example the number of an order
  --id <id>        names the signal: sent twice with the same id, it counts once; default: a random id
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { name, key, id, to: the id of the run that got it, or null }

Examples:
  pawl signal payment '{ "cents": 700 }' --key "order 7" --id webhook-123
`;

/** The help text of `pawl park`. */
export const park = `Usage: pawl park <run id> [reason] [options]

Sets an interrupted run aside: \`pawl resume\` and every \`recover()\` skip it until it is unparked. A run that a process works
on is not parked.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, status: 'parked' }

Examples:
  pawl park nightly-2026-11-21 "the customer already knows"
`;

/** The help text of `pawl unpark`. */
export const unpark = `Usage: pawl unpark <run id> [options]

Releases a parked run and resets its attempts, so that it can be resumed. A run that is not parked does not change. A run that
was parked because its agent's phases had changed needs the former phases: with others, its next start parks it
again.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, status: 'interrupted' }

Examples:
  pawl unpark nightly-2026-11-21
  pawl unpark nightly-2026-11-21 && pawl resume nightly-2026-11-21
`;

/** The help text of `pawl doctor`. */
export const doctor = `Usage: pawl doctor [agent module…] [options]

Reads every record of a store as a resume would (whole, with its checksums, and with the steps from older versions). It says for
each run whether the next recovery continues it, and why not. It writes nothing and starts no run. Without agent modules it
imports nothing, and cannot detect changed agents. With them it also reports missing agents, changed phases, and records that
\`migrate\` cannot convert. Importing a module runs its top level: name the file that only defines the agent (agent.ts), not a
program that starts runs (main.ts). A file without a default export is not imported.

  resumes     the next recovery continues it            child       its parent run continues it
  live        a process works on it                     parked      it is set aside, or the next start parks it
  waits       for an approval, an answer, an event, a time, a child run or its model
  skipped     no module was named for its agent, or its module is gone or can be written by others
  fails       the \`migrate\` of its agent module throws for it
  unreadable  damaged, or of a newer version; its bytes are kept

Lines that begin with ! need a person. Exit code 1 if there are any, 0 otherwise.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           JSON lines on stdout: { type: 'run', runId, verdict, reason, code?, needsPerson, record? } for each, and
                   at the end { type: 'summary', store, records, verdicts, needingPerson }

Examples:
  pawl doctor
  pawl doctor agents/clerk.ts --store /var/lib/pawl/runs.db && echo ready to deploy
  pawl doctor --json | jq -r 'select(.needsPerson).runId'
`;

/** The help text of `pawl studio`. */
export const studio = `Usage: pawl studio [options]

Serves a web page on the runs of a store, at 127.0.0.1 and ::1 only: what runs, what waits for a person, why a run does not
continue, what it did and cost. Other processes work on the runs; this one starts and continues none. It reads only, unless
--write or --apply is given. The store need not exist yet. Ctrl-C stops it.

The printed address has the token of this store's Studio after the #. It stays the same, so that an open page works again
after a restart; only this user can read it.

Options:
  --write          the page may answer, steer, cancel, park and unpark runs, in the name of this user
  --apply <folder> the page may apply the file changes that fan-outs propose, below this folder
  --fan-outs <folder>  where fan-outs are looked for; default .pawl
  --agent <file>   an agent module: with it the page knows its step limits and phases, and the codec that it exports
  --codec <file>   a module that exports \`codec\`; else that of --agent, else $PAWL_CODEC
  --port <n>       default 4747; if it is taken, the next one that is free. 0 = any
  --open           opens the page in the browser
  --new-token      replaces the token: pages that are open need the new address
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           one line when it listens: { url, port, store, write, apply: folder or null }

Examples:
  pawl studio --open
  pawl studio --store /var/lib/pawl/runs.db --write
`;

/** The help text of `pawl prune`. */
export const prune = `Usage: pawl prune [options]

Deletes expired results of ended runs. Stores do this themselves when further runs end; this is for stores without new runs.
Records are deleted only on request, and permanently; runs that are live or can be recovered are never deleted.

Options:
  --parked         also parked runs; needs --older-than. To end a run with a result, use \`pawl cancel\` instead
  --waiting        also runs that wait for an answer, an event or a time: each is ended as cancelled, with its child runs;
                   needs --older-than
  --quarantined    also damaged records: each record is read whole to find them, as by \`pawl doctor\`. Records that need a
                   newer version or a key stay
  --older-than <time>  only records last written so long ago: 12h, 30d. Damaged records without a readable time stay
  --dry-run        says what would be deleted, and deletes nothing
  --yes            does not ask; needed to delete records without a terminal
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { store, dryRun, outcomes: number, history: number, deleted: [runId], kept: [{ runId, reason }] }

Examples:
  pawl prune --parked --older-than 30d --dry-run
  pawl prune --quarantined --yes
`;

/** The help text of `pawl backup`. */
export const backup = `Usage: pawl backup <file> [options]

Copies the store into a new file, as of one moment, while processes work on it. The file must not exist. No command uses the copy as a
store: \`pawl restore\` makes one of it. For a store in PostgreSQL, use pg_dump.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { store, backup, takenAt: ISO time, bytes: number }

Exit codes: 0 it is made; 2 there is no such store, or the file exists.

Examples:
  pawl backup /backups/runs-$(date +%F).backup
`;

/** The help text of `pawl restore`. */
export const restore = `Usage: pawl restore <backup> --store <new file> [options]
       pawl restore --accept-without-wal <file>

Makes a new store of a backup; it never writes over a store. Each run that had not ended is parked with code RESTORED: what
it did after the backup is not recorded, and it would do that again. Look at a run with \`pawl show\`, then release it with
\`pawl unpark\`, or end it with \`pawl cancel\`.

Options:
  --store <store>  the new SQLite file; else $PAWL_STORE
  --resume-reads   do not park a run whose recorded open step has only calls of effect read, or none, if that holds for all runs
                   of its tree. It continues from the backup, and may do again what it did since
  --codec <file>   the module with the codec of an encrypted store; else $PAWL_CODEC
  --accept-without-wal <file>  lets a store open whose -wal file is missing: nothing is missing, or the lost steps do not matter
  --json           { store, takenAt: ISO time, parked: [runId], resumed: [runId], parkedBefore: [runId], unreadable: [runId] };
                   with --accept-without-wal: { store, accepted: true }

Exit codes: 0 it is restored; 2 there is no such backup, or the store exists.

Examples:
  pawl restore runs.backup --store restored.db
`;
