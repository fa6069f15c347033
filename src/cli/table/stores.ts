import { AUDIT, type CommandRow, STORE } from './row.ts';

/** The commands on a whole store. */
export const storeCommands = {
  schedules: {
    takes: '[pause | resume] [id]',
    usage: ['pawl schedules [options]', 'pawl schedules pause <id> [options]', 'pawl schedules resume <id> [options]'],
    words: 2,
    does: 'list the schedules of a store; then schedules pause, resume <id>',
    about: `Lists the runs that start by the clock: the next tick of each schedule, the last one, and how many began no run. A schedule that is
paused begins no run in any process, until it is resumed; its ticks are not made up. The processes with the schedules are
those that your program, or \`pawl work\`, runs.`,
    options: {
      by: 'who pauses it: the list shows it',
      store: STORE,
      json: `{ store, schedules: [{ id, cron?, every?, timeZone?, nextAt?, lastAt?, lastRunId?, paused?, skipped, missed, failed, gone?, disabled? }] };
of pause and resume: { id, status: 'paused' | 'resumed' }`,
    },
    more: `  SKIPPED   the run of an earlier tick had not ended
  MISSED    no process looked within a minute
  FAILED    its \`start\` threw
  gone      no deployment defines it, or no process has looked after it for ten minutes`,
    examples: ['pawl schedules', 'pawl schedules pause nightly --by ada', 'pawl schedules resume nightly'],
    load: async () => (await import('../commands/schedules-command.ts')).schedulesCommand,
  },
  doctor: {
    takes: '[agent module…]',
    does: 'read every record, and say what the next recovery does with it',
    about: `Reads every record of a store as a resume would (whole, with its checksums, and with the steps from older versions). It says for
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

Lines that begin with ! need a person. Exit code 1 if there are any, 0 otherwise.`,
    options: {
      agent: 'one more agent module, as other commands name it',
      store: STORE,
      json: `JSON lines on stdout: { type: 'run', runId, verdict, reason, code?, needsPerson, record? } for each, and
at the end { type: 'summary', store, records, verdicts, needingPerson }`,
    },
    examples: [
      'pawl doctor',
      'pawl doctor agents/clerk.ts --store /var/lib/pawl/runs.db && echo ready to deploy',
      "pawl doctor --json | jq -r 'select(.needsPerson).runId'",
    ],
    load: async () => (await import('../commands/store/doctor-command.ts')).doctorCommand,
  },
  prune: {
    does: 'delete expired results, and records on request',
    about: `Deletes expired results of ended runs. Stores do this themselves when further runs end; this is for stores without new runs.
Records are deleted only on request, and permanently; runs that are live or can be recovered are never deleted.`,
    options: {
      parked: 'also parked runs; needs --older-than. To end a run with a result, use `pawl cancel` instead',
      waiting: `also runs that wait for an answer, an event or a time: each is ended as cancelled, with its child runs;
needs --older-than`,
      quarantined: `also damaged records: each record is read whole to find them, as by \`pawl doctor\`. Records that need a
newer version or a key stay`,
      'older-than': 'only records last written so long ago: 12h, 30d. Damaged records without a readable time stay',
      'dry-run': 'says what would be deleted, and deletes nothing',
      yes: 'does not ask; needed to delete records without a terminal',
      store: STORE,
      json: '{ store, dryRun, outcomes: number, history: number, deleted: [runId], kept: [{ runId, reason }] }',
    },
    examples: ['pawl prune --parked --older-than 30d --dry-run', 'pawl prune --quarantined --yes'],
    load: async () => (await import('../commands/store/prune-command.ts')).pruneCommand,
  },
  backup: {
    takes: '<file>',
    does: 'copy the store while processes write to it',
    about: `Copies the store into a new file, as of one moment, while processes work on it. The file must not exist. No command uses the copy as a
store: \`pawl restore\` makes one of it. For a store in PostgreSQL, use pg_dump.`,
    options: {
      store: STORE,
      json: '{ store, backup, takenAt: ISO time, bytes: number }',
    },
    more: 'Exit codes: 0 it is made; 2 there is no such store, or the file exists.',
    examples: ['pawl backup /backups/runs-$(date +%F).backup'],
    load: async () => (await import('../commands/store/backup-command.ts')).backupCommand,
  },
  restore: {
    takes: '<backup>',
    usage: ['pawl restore <backup> --store <new file> [options]', 'pawl restore --accept-without-wal <file>'],
    does: 'make a store of a backup; its runs are parked',
    about: `Makes a new store of a backup; it never writes over a store. Each run that had not ended is parked with code RESTORED: what
it did after the backup is not recorded, and it would do that again. Look at a run with \`pawl show\`, then release it with
\`pawl unpark\`, or end it with \`pawl cancel\`.`,
    options: {
      store: 'the new SQLite file; else $PAWL_STORE',
      'resume-reads': `do not park a run whose recorded open step has only calls of effect read, or none, if that holds for all runs
of its tree. It continues from the backup, and may do again what it did since`,
      codec: 'the module with the codec of an encrypted store; else $PAWL_CODEC',
      'accept-without-wal':
        'lets a store open whose -wal file is missing: nothing is missing, or the lost steps do not matter',
      json: `{ store, takenAt: ISO time, parked: [runId], resumed: [runId], parkedBefore: [runId], unreadable: [runId] };
with --accept-without-wal: { store, accepted: true }`,
    },
    more: 'Exit codes: 0 it is restored; 2 there is no such backup, or the store exists.',
    examples: ['pawl restore runs.backup --store restored.db'],
    load: async () => (await import('../commands/store/restore-command.ts')).restoreCommand,
  },
  export: {
    takes: '<run id>…',
    does: 'write recorded runs to a file: for replays, tests, and other stores',
    about: `Writes recorded runs as lines of JSON, each followed by the runs that its calls began: to stdout, or with --out to a file that
is whole or not there. A run that ended is kept as \`retention\` of its executor says. Texts are those of the record; secrets of this
process's environment are replaced by the names of their variables.`,
    options: {
      out: 'the file; it is replaced. Only this user may read it',
      decrypt: 'an encrypted store is written as plain text',
      store: STORE,
      json: 'nothing changes: each line is JSON',
    },
    more: 'Exit codes: 0 it is written; 2 a run is not there, or nothing was written.',
    examples: ['pawl export order-17 order-18 --out runs.jsonl', 'pawl export order-17 | head -1 | jq .status'],
    load: async () => (await import('../lab/files-commands.ts')).exportCommand,
  },
  import: {
    takes: '<file>',
    does: 'put exported runs into a store, as runs that have ended',
    about: `Puts the runs of a file into the store. A run that the store knows stays as it is. An imported run has ended: no process continues
it, and its end is not delivered. It can be shown, forked and replayed, and it is kept until it is erased.`,
    options: {
      store: STORE,
      json: '{ store, imported: [runId], skipped: [runId], damaged: [{ line, message }] }',
    },
    more: 'Exit codes: 0 done; 1 some lines are damaged, the rest is imported; 2 there is no such file.',
    examples: ['pawl import runs.jsonl --store lab.db'],
    load: async () => (await import('../lab/files-commands.ts')).importCommand,
  },
  replay: {
    takes: '<file or run id>',
    does: 'run recorded runs again, without the world, and say what differs',
    about: `Runs recorded runs again with the agent of a module: from their recordings, without a store, a person, a model or a tool. With the
agent of the time each is the same; with another version of it you see where it would differ. With --live-model the models of the module
are asked, and tools are answered from the recording. Importing the module runs its top level. Runs that calls of other runs began are left
out, unless the module is that of their agent.`,
    options: {
      agent: 'the agent module',
      'live-model': 'asks the models of the module, as `pawl run` does',
      tools:
        '`strict`: a call with an input that is not recorded is missed; else the next recorded one of its tool answers',
      'on-miss': `a call without a recording: \`error\` tells the model, \`read-live\` runs tools that only read; else the replay
ends there`,
      store: STORE,
      json: 'JSON lines on stdout: the report of each run, as replay() of pawl/lab returns it',
    },
    more: `Exit codes: 0 all runs are the same (with --live-model: all end ok); 1 not all, or lines of the file are damaged; 2 bad input, or there
was no run to replay.`,
    examples: [
      'pawl replay runs.jsonl --agent agent.ts',
      'pawl replay order-17 --agent agent.ts --live-model --on-miss error',
    ],
    load: async () => (await import('../lab/replay-command.ts')).replayCommand,
  },
  stats: {
    usage: [
      'pawl stats [--by day|agent|caller] [options]',
      'pawl stats --now agent|caller|label:<name> [options]',
      'pawl stats --rows [options]',
    ],
    does: 'how many runs are live, due, waiting and parked, and totals of those that ended; --rows: what fills the store',
    about: `Says how many runs of the store have not ended: one read of an index, also of a large store. Then it sums up the runs that ended with --audit: how many there were and how they ended, steps, tokens, dollars (where a budget
counted them), and working time. Days are those on which runs started, in UTC, and count every run; agents and callers count the
runs that the store still keeps.

With --now it says of each agent, caller or value of a label how many of its runs have not ended, by status, and with which codes they are
parked. It reads the list of these runs.

With --rows it says of records, outcomes, events, signals, threads and the audit how many rows and bytes there are, how old the oldest
is, and how many are past their time: \`pawl prune\` removes those. It reads whole tables.`,
    options: {
      rows: 'rows, bytes and age of what the store holds, in the place of the totals',
      now: 'what the runs that have not ended are counted by: agent, caller, or a label such as label:tenant',
      by: 'what the totals are of: day (the default), agent or caller',
      since: 'runs that started since then: a date, or how long ago (30m, 12h, 7d)',
      store: STORE,
      json: `{ store, now: { live, due, dueAgeMs, waiting, parked }, by, totals: [{ key, runs, statuses, usage, spend, iterations,
elapsedMs }] }; with --now { store, runs: [{ key, live, interrupted, waiting, parked, quarantined, codes }] }; with --rows
{ store, rows: [{ kind, rows, bytes?, oldestAt?, firstUntil?, expired }] }`,
    },
    examples: [
      'pawl stats',
      'pawl stats --by caller --since 30d',
      'pawl stats --now label:tenant',
      'pawl stats --rows',
      'pawl stats --by agent --store /var/lib/pawl/runs.db --json',
    ],
    load: async () => (await import('../commands/store/stats-command.ts')).statsCommand,
  },
  studio: {
    does: 'a web page on the store: what runs, what waits for you, and why',
    about: `Serves a web page on the runs of a store, at 127.0.0.1 and ::1 only: what runs, what waits for a person, why a run does not
continue, what it did and cost. Other processes work on the runs. This one starts none, and continues one only by Retry, with --write --agent. It reads only, unless
--write or --apply is given. The store need not exist yet. Ctrl-C stops it.

The printed address has the token of this store's Studio after the #. It stays the same, so that an open page works again
after a restart; only this user can read it.`,
    options: {
      audit: AUDIT,
      write: 'the page may answer, steer, cancel, park and unpark runs, in the name of this user',
      apply: 'the page may apply the file changes that fan-outs propose, below this folder',
      'fan-outs': 'where fan-outs are looked for; default .pawl',
      agent: 'an agent module: with it the page knows its step limits and phases, and the codec that it exports',
      codec: 'a module that exports `codec`; else that of --agent, else $PAWL_CODEC',
      port: 'default 4747; if it is taken, the next one that is free. 0 = any',
      open: 'opens the page in the browser',
      'new-token': 'replaces the token: pages that are open need the new address',
      store: STORE,
      json: 'one line when it listens: { url, port, store, write, apply: folder or null }',
    },
    examples: ['pawl studio --open', 'pawl studio --store /var/lib/pawl/runs.db --write'],
    load: async () => (await import('../commands/studio-command.ts')).studioCommand,
  },
} satisfies Readonly<Record<string, CommandRow>>;
