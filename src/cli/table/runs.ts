import { AUDIT, type CommandRow, STORE } from './row.ts';

/** The commands that begin, show, continue and end runs. */
export const runCommands = {
  run: {
    takes: '<agent module> [prompt]',
    does: 'run an agent to its answer',
    about: `Runs an agent until it answers. The answer goes to stdout; progress goes to stderr.

The agent module is a JavaScript or TypeScript file. Its default export is the agent (made with defineAgent), or a workflow
(made with defineWorkflow): then the text is its input as JSON, \`input\` exports the default, and stdout has the output of its
machine as JSON. It may also export \`models\` ({ tier: model } or a function), \`tools\` (for those that the agent names), \`prompt\` (the default
prompt), \`ports\` ({ budget, critic, palette, audit }, each as in createExecutor), \`compactor\`, \`contextTokens\`,
\`audit\`, \`retention\`, \`migrate\`, and \`codec\` (of the store: as encrypt({ … }) makes it). A run that has ended is
kept for 7 days, for \`pawl retry\`, \`pawl list --all\` and \`pawl studio\`; \`export const retention = { records: 0 }\` keeps none.
Importing it runs its top level: keep the agent in its own file (agent.ts), apart from a program that starts runs
(main.ts). Its path is stored for \`pawl resume\` in a private file of this user ($PAWL_STATE_HOME), and never in the record.
Tools find the folder in which the run started as context.invocation.inputs.cwd.

PAWL_MODEL=provider/model replaces the module's models, and that of its agent; the provider's key comes from its usual variable, for
example OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY.

On a terminal, \`pawl run\` and \`pawl resume\` of one run ask when the run waits for an approval (y, n, edit, later) or an
answer, and continue. Elsewhere, and for other waits, they exit with 75 and print the commands that answer and continue.

Ctrl-C once stops after saving and says how to continue; twice exits now. Nothing recorded is lost either way.`,
    options: {
      'run-id': `your own id for the run; the same request with it (agent, prompt, folder) resumes
it, or gives its result; any other request is refused`,
      store: 'where the run is recorded; else $PAWL_STORE, else .pawl/runs.db',
      audit: `keep the run for 90 days after its end, with its steps and calls, and count it in the totals: for \`pawl show\`,
\`pawl list --all\` and \`pawl stats\`; \`export const audit = true\` in the agent module does it too`,
      json: `JSON lines on stdout: { type: 'run.started', runId, agentId, store, resumed }, for each step
{ type: 'step.done', runId, iteration, tools, usage }, and at the end
{ type: 'run.ended', runId, status, output, error?, usage, iterations, … }; a run that waits gives
{ type: 'run.waiting', runId, waits: [as of \`pawl waiting\`], commands: […] }; after a crash
{ type: 'run.unknown', runId, tools } names calls that may have had their effect`,
    },
    examples: [
      'pawl run agent.ts "Summarise the open tickets"',
      'pawl run agent.ts --run-id nightly-2026-11-21 --store /var/lib/pawl/runs.db',
      'pawl run agent.ts --audit',
      'PAWL_MODEL=anthropic/claude-sonnet-4-5 pawl run agent.ts "Summarise the open tickets"',
    ],
    load: async () => (await import('../commands/run-command.ts')).runCommand,
  },
  list: {
    does: 'the runs that wait or are live in other processes; --all: the ended ones too',
    about: `Lists the runs of a store that have not ended: interrupted ones, those that are live in some process, those that wait, parked
ones, and records that cannot be read. Results of ended runs are kept for a week: \`pawl show <run id>\`.

With --all they are followed by the ended runs whose records the store keeps, the latest first: those of \`pawl run\` for 7 days, with
--audit for 90.`,
    options: {
      store: STORE,
      'needs-person': 'only runs that a person must look at: parked, unreadable, or waiting for one',
      all: 'also runs that have ended and that the store keeps',
      since: 'kept runs that ended since then: a date, or how long ago (30m, 12h, 7d)',
      status: 'kept runs of this status: ok, error, timeout, cancelled or killed; some with commas between',
      label: 'kept runs with this label, for example tenant=acme',
      limit: 'at most so many kept runs; default 50',
      json: `{ store, runs: [{ runId, status: 'live' | 'interrupted' | 'waiting' | 'parked' | 'quarantined', … }] }, and with
--all { …, ended: [{ runId, status, usage, iterations, endedAt, … }] }`,
    },
    examples: [
      'pawl list',
      'pawl list --all --since 7d --status error,timeout --label tenant=acme',
      `pawl list --json | jq -r '.runs[] | select(.status == "interrupted").runId'`,
    ],
    load: async () => (await import('../commands/list-command.ts')).listCommand,
  },
  show: {
    takes: '<run id>',
    does: 'one run: its progress, or how it ended',
    about: `Shows a run. If it waits or is live: its steps, its running calls and the commands that it has not processed yet. If it has
ended: its result. Under a budget: what it has cost. Of a run whose record the store keeps: its phases and its child runs, and with --audit of
\`pawl run\` its steps and calls. Of a workflow: the state of its machine, and its timers.`,
    options: {
      agent: 'the module of its agent: whether it can continue the run; of a workflow, which events the state takes',
      store: STORE,
      json: `{ runId, status: 'live' | 'interrupted' | 'waiting' | 'parked', why: { verdict, reason, code?, needsPerson }, next?,
pid?, module?, workflow?, record, commands, audit? } next: the command that continues the run. Or { runId, status: 'ended', outcome, audit? }, outcome null if it is kept no more.
audit: { run, children: [{ run, children }] }`,
    },
    examples: ['pawl show nightly-2026-11-21', 'pawl show nightly-2026-11-21 --json | jq .outcome.output'],
    load: async () => (await import('../commands/show-command.ts')).showCommand,
  },
  resume: {
    takes: '[run id]',
    does: 'continue one interrupted run, or all of them',
    about: `Continues an interrupted run from its last recorded step; without an id, all of them, as \`pawl recover\` does. A run that
another process works on does not change. A run that has ended meanwhile gives its result again. A sub-agent's run continues
with its parent run: use the id of the parent.

The agent module is the one with which this user started the run on this machine. Records name no code: a run of another
user, machine or program needs --agent.`,
    options: {
      agent:
        'the agent module, if it was moved, or if pawl did not start the run here; importing it runs its top level',
      store: STORE,
      audit: AUDIT,
      json: `JSON lines on stdout, as of \`pawl run\`; one that cannot be resumed gives
{ type: 'run.skipped', runId, reason }`,
    },
    examples: [
      'pawl resume nightly-2026-11-21',
      'pawl resume --store /var/lib/pawl/runs.db',
      'pawl resume nightly-2026-11-21 --agent ./moved/agent.ts',
    ],
    load: async () => (await import('../commands/resume-command.ts')).resumeCommand,
  },
  retry: {
    takes: '<run id>',
    does: 'continue a run that ended badly',
    about: `Continues a run that ended with an error, a limit, a cancel or a kill, after its last recorded step. It is the same run: nothing
that it recorded is done again, its usage and cost are added up, and its limits begin again. Mend the cause first. Its record is kept for 7
days. A parked run is unparked, an interrupted one resumed. A sub-agent's run continues with its parent run.

The agent module is found as by \`pawl resume\`.`,
    options: {
      agent:
        'the agent module, if it was moved, or if pawl did not start the run here; importing it runs its top level',
      store: STORE,
      audit: AUDIT,
      json: 'JSON lines on stdout, as of `pawl run`',
    },
    more: `Exit codes: those of \`pawl run\`; 2 where nothing was done: there is no such run, it has its answer, or its record is not kept.`,
    examples: ['pawl retry order-17', 'pawl retry order-17 --agent ./mended/agent.ts'],
    load: async () => (await import('../commands/resume-command.ts')).retryCommand,
  },
  fork: {
    takes: '<run id>',
    does: 'another run with the first steps of a stored one',
    about: `Starts another run with the first steps of a stored one: live, waiting or ended. The stored run does not change, and nothing before
the cut is done again. \`pawl show\` says how many steps a run has. With --agent the fork continues with that agent.`,
    options: {
      at: 'how many steps it keeps: 0 to all',
      effects:
        'what its calls with an effect do: live (they run), ask (a person decides about each) or refuse. Needed where a tool may have any',
      'run-id': 'your own id for the fork; the same fork with it is found again',
      agent: 'another agent module; else the one with which the run was started. Importing it runs its top level',
      store: STORE,
      audit: AUDIT,
      json: 'JSON lines on stdout, as of `pawl run`',
    },
    more: 'Exit codes: those of `pawl run`; 2 where nothing was done: no such run, no such step, or --effects is missing.',
    examples: ['pawl fork order-17 --at 3 --effects refuse --agent ./careful.ts'],
    load: async () => (await import('../commands/resume-command.ts')).forkCommand,
  },
  recover: {
    takes: '[agent module…]',
    does: 'continue all interrupted runs, or those of these agents',
    about: `Continues all interrupted runs, each from its last recorded step. With agent modules: the runs of these agents, no matter
which program started them; without: those that this user started on this machine, each with its module; others need theirs.
Importing a module runs its top level. Runs that are live elsewhere or parked do not change. Runs of sub-agents are continued
by their parent runs; if the top run is gone, they are cancelled, without their agents and without another model call. A
run that its next start may park continues last, alone.

Exit code 0: all went well, 1: a run failed, or cannot be read, 75: none did, and one waits, is parked or was given back; \`pawl doctor\`
says which before anything is started.`,
    options: {
      store: STORE,
      audit: AUDIT,
      json: 'JSON lines on stdout, as of `pawl resume`',
    },
    examples: ['pawl recover', 'pawl recover agents/clerk.ts agents/critic.ts --store /var/lib/pawl/runs.db'],
    load: async () => (await import('../commands/resume-command.ts')).recoverCommand,
  },
  work: {
    takes: '<agent module>',
    does: 'take due runs beside other processes, until it is stopped',
    about: `Takes due runs of one agent from the store and works on them, beside any other processes that do the same, until it is stopped.
Runs come from programs that admit them (\`start\` with drive: 'later'), from interrupted ones, and from runs that wake. The agent
module is one as of \`pawl run\`. With several processes use a store in PostgreSQL; a SQLite file serves those of one host.

SIGTERM or Ctrl-C: it takes nothing more, and ends its runs between two calls. Calls under way have the time of --drain: those of
models three quarters of it. The runs continue in other processes. A second signal exits now, as after a crash.`,
    options: {
      concurrency: 'how many runs it works on at once; default 16',
      'fair-by': 'the runs of each value of this label take turns. Give all processes the same',
      'per-key': 'at most so many runs of one value at once; needs --fair-by',
      deployment:
        'the number of the release, higher for each: a run that a higher one took is left alone by lower ones',
      budget: 'how long it works on a run before it leaves it to any process; default 10m',
      listen:
        'PostgreSQL only: what admits a run wakes it at once (postgresStore({ notify: true })); else it asks each second',
      drain: 'longest time to leave its runs after a signal; default 25s',
      health: `serves GET /healthz and /readyz for probes: a port of 127.0.0.1, or an address with a port (0.0.0.0:8080)`,
      'wait-for-store':
        'how long a store that does not answer at the start is waited for; default 5m, then exit code 69',
      store: 'the store; else $PAWL_STORE, else .pawl/runs.db. Made if it does not exist',
      audit: AUDIT,
      json: `JSON lines on stdout: { type: 'work.started', agentId, store, concurrency }, for each run that it takes
{ type: 'run.started' | 'run.resumed', runId }, { type: 'step.done', runId, iteration, tools, usage },
{ type: 'run.waiting', runId, waits, wakeAt? }, { type: 'run.parked', runId, code, reason },
{ type: 'run.ended', runId, status, output, error? } with the status interrupted for one that it left,
{ type: 'work.draining', live, drainMs } at a signal, and { type: 'work.ended', taken, ended, live }`,
    },
    more: `Exit codes: 0 stopped, all runs left or ended · 1 some could not be left in time: they continue when their leases end · 2 bad input,
nothing was done · 69 the store did not answer · 130 a second signal

The module may export \`schedules\`, as of \`createExecutor({ schedules })\`: this process then looks after them.
The module may export \`limits\`, the rules of \`rateLimits\`: all workers on a store share them. \`tracing\`, made with \`openTelemetry()\` of
\`pawl/otel\`, gives traces and metrics, and \`close\` is awaited at the end.
The module may export \`close()\`: it is awaited after the drain, 5 s at most, to flush an SDK for example.`,
    examples: [
      'pawl work agent.ts --store postgres://app@db/app --listen --concurrency 32',
      'pawl work agent.ts --fair-by tenant --per-key 4 --deployment 42',
    ],
    load: async () => (await import('../work/work-command.ts')).workCommand,
  },
  health: {
    does: 'ask a worker whether it is well: for images without curl',
    about: `Asks the probe of a process (\`pawl work --health\`, or \`healthHandler\` of pawl/http), and says what it answers.`,
    options: {
      url: 'what it asks; default http://127.0.0.1:8080/readyz',
      json: '{ ok, reasons }; reasons is ["NO_ANSWER"] where nothing answered within 5 s',
    },
    more: 'Exit codes: 0 it is well · 1 it is not, or does not answer · 2 bad input',
    examples: ['pawl health --url http://127.0.0.1:8080/healthz'],
    load: async () => (await import('../work/health-command.ts')).healthCommand,
  },
  cancel: {
    takes: '<run id>',
    does: 'end a run permanently, wherever it is',
    about: `Ends a run permanently: at once if it waits or is parked; within about a second if it is live in another process. To cancel a
sub-agent's run, cancel its parent run; if the parent only waits, the next \`pawl recover\` ends its children. A host's
\`onOutcome\` gets the end about a second later, in a process that has the agent.`,
    options: {
      reason: 'the reason, part of its result',
      wait: 'how long to wait for a live run to end; default 10s. After that, exit code 1: the command stays with the run',
      store: STORE,
      audit: AUDIT,
      json: `{ runId, status: 'cancelled' | 'ended' | 'waiting' }; ended: it had already ended in another way. A second
cancel gives 'cancelled' again; exit code 0 for both`,
    },
    examples: ['pawl cancel nightly-2026-11-21 --reason "the customer called"'],
    load: async () => (await import('../commands/control-command.ts')).cancelCommand,
  },
  steer: {
    takes: '<run id> <text>',
    does: 'send a message to the model of a run',
    about: `Sends a message to the model of a run before its next turn. A run that is live in another process gets it within a second; a
run that waits gets it when it continues.`,
    options: {
      wait: `how long to wait until a live run has the message; default 10s. After that, exit code 1: the message stays
with the run`,
      store: STORE,
      json: `{ runId, status: 'heard' | 'kept' | 'waiting' | 'ended' }; kept: until the run continues; ended: perhaps
without the message`,
    },
    examples: ['pawl steer nightly-2026-11-21 "Leave the archive alone"'],
    load: async () => (await import('../commands/control-command.ts')).steerCommand,
  },
} satisfies Readonly<Record<string, CommandRow>>;
