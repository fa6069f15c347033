// The help pages of the commands that look after runs: set going, told, set aside, checked and removed.

export const recover = `Usage: pawl recover [agent module…] [options]

Goes on with all interrupted runs, each from its last recorded step. With agent modules: with the runs of these agents, whoever
began them; without: with those that this user started on this machine, each with its module; the others ask for theirs.
Importing a module runs its top level. Runs that are live elsewhere or parked are left alone. Runs that agents began are left to their parents; where the run at the top is gone they are ended as cancelled, without
their agents and without another call of a model. A run that is one start away from being parked goes on last, alone.

Exit code 0: all went well, 1: a run failed, or needs a person; \`pawl doctor\` says which before anything is started.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   where runs are remembered when their records are gone, as of \`pawl run\`
  --json           JSON lines on stdout, as of \`pawl resume\`

Examples:
  pawl recover
  pawl recover agents/clerk.ts agents/critic.ts --store /var/lib/pawl/runs.db
`;

export const cancel = `Usage: pawl cancel <run id> [options]

Ends a run for good: one that waits or is parked at once, one that is live in another process when that process next looks
(within a second). A sub-agent's run is best cancelled by cancelling the run that began it; where that one only waits, the next
\`pawl recover\` ends what it has begun. The \`onOutcome\` of a host is called where the run is live, and not by this command.

Options:
  --reason <text>  goes into its result
  --wait <time>    how long to wait for a live run to end; default 10s. After that, exit code 1: the command stays with the run
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store when it is there
  --json           { runId, status: 'cancelled' | 'ended' | 'waiting' }; ended: it had ended in another way before.
                   Cancelled again it is 'cancelled' once more; exit code 0 for both

Examples:
  pawl cancel nightly-2026-11-21 --reason "the customer called"
`;

export const steer = `Usage: pawl steer <run id> <text> [options]

Says something to the model of a run before its next turn. A run that is live in another process hears of it within a second;
one that waits hears it when somebody goes on with it.

Options:
  --wait <time>    how long to wait until a live run has taken it in; default 10s. After that, exit code 1: the text stays
                   with the run
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, status: 'heard' | 'kept' | 'waiting' | 'ended' }; kept: for whoever goes on with it; ended: perhaps
                   without hearing it

Examples:
  pawl steer nightly-2026-11-21 "Leave the archive alone"
`;

export const park = `Usage: pawl park <run id> [reason] [options]

Sets an interrupted run aside: \`pawl resume\` and every \`recover()\` leave it alone until it is unparked. A run that a process
works on is not parked.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, status: 'parked' }

Examples:
  pawl park nightly-2026-11-21 "the customer was told already"
`;

export const unpark = `Usage: pawl unpark <run id> [options]

Gives a parked run back, whoever parked it: it can be resumed, and has all its attempts again. A run that is not parked stays
as it is. One that was parked because its agent's phases had changed needs the former phases instead: while they are others,
its next start parks it again.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { runId, status: 'interrupted' }

Examples:
  pawl unpark nightly-2026-11-21
  pawl unpark nightly-2026-11-21 && pawl resume nightly-2026-11-21
`;

export const doctor = `Usage: pawl doctor [agent module…] [options]

Reads every record of a store as a resume would (whole, with its checksums, and with the steps from older versions), and says for each
run whether the next recovery goes on with it, and why not. It writes nothing and starts no run. Without agent modules it imports
nothing, and cannot tell whether agents have changed. With them it also says whose agent is missing, whose list of phases has
changed, and whose record their \`migrate\` cannot bring over. Importing a module runs its top level: name the file that only
defines the agent (agent.ts), not a program that starts runs (main.ts). A file without a default export is not imported.

  resumes     the next recovery goes on with it         waits       the run that began it goes on with it
  live        a process works on it                     parked      it is set aside, or the next start will do that
  skipped     no agent of its id was named, or its module is gone or can be written by others
  fails       the \`migrate\` of its agent module throws at it
  unreadable  damaged, or of a newer version; its bytes are kept

Lines that begin with ! need a person. Exit code 1 when there are any, 0 otherwise.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           JSON lines on stdout: { type: 'run', runId, verdict, reason, code?, needsSomebody, record? } for each, and
                   at the end { type: 'summary', store, records, verdicts, needingSomebody }

Examples:
  pawl doctor
  pawl doctor agents/clerk.ts --store /var/lib/pawl/runs.db && echo ready to deploy
  pawl doctor --json | jq -r 'select(.needsSomebody).runId'
`;

export const prune = `Usage: pawl prune [options]

Removes results of ended runs whose time is over. Stores do so themselves when further runs end; this is for those in which none do.
Records go only when they are asked for, and are gone for good; a run that is live or can be recovered never is.

Options:
  --parked         also runs that were set aside; needs --older-than. To end one with a result, \`pawl cancel\` it instead
  --quarantined    also records that are damaged: each is read whole for that, as by \`pawl doctor\`. Not those that it
                   takes a newer version or a key to read
  --older-than <time>  only records last written so long ago: 12h, 30d. Of some damaged records nobody can tell; they stay
  --dry-run        says what would go, and removes nothing
  --yes            does not ask; needed to remove records where nobody can be asked
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --json           { store, dryRun, outcomes: number, deleted: [runId], kept: [{ runId, reason }] }

Examples:
  pawl prune --parked --older-than 30d --dry-run
  pawl prune --quarantined --yes
`;
