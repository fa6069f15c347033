import type { CommandName } from '../arguments.ts';
import { cancel, doctor, park, prune, recover, steer, unpark } from './help-operations.ts';

/** What `pawl ask --help` says. */
const ask = `Usage: pawl ask <prompt> --models a,b,c [options]
       pawl ask --continue [checkpoint file] [options]
       pawl ask show [model] | diff [model] | apply <model> | rewind [--root <dir>]

Asks several models the same at once and shows them side by side. Each turn is recorded in .pawl/ask.json: after Ctrl-C, a
crash or a model's deadline, \`pawl ask --continue\` asks only those that have not answered, from their last step. When all
are done, the answers are in .pawl/answers.json, in the place of those before; models that failed are asked anew by
\`pawl ask --continue\`. The prompt - is what comes on stdin.

\`pawl ask show\` prints the answers to the newest question again. The models may look at the files of the folder, and propose
changes: \`pawl ask diff\` shows them. Nothing is changed before \`pawl ask apply <model>\`, which does all that this model
proposes or nothing; \`pawl ask rewind\` takes it back.

Models are named provider/model (the package @ai-sdk/<provider> must be installed, and its key be set), or as a --module
names them, which exports \`models\` ({ name: model }), and may export \`tools\`, \`instructions\`, \`prices\` and \`judge\`.
Costs are shown where the package @pydantic/genai-prices is installed, or the module has prices.

On a terminal that is wide enough each model has a column; on others Tab and the arrow keys choose whose text is shown.
Ctrl-C once stops after saving and says how to go on; twice exits now.

Options:
  -m, --models <list>  whom to ask, with commas; default: all that the module exports
  --module <file>      where models, tools, … come from; needed again for --continue
  --judge <model>      ranks the answers, without being told whose they are; its own tokens come on top
  --root <dir>         the folder to work on, and that has .pawl; default: this one, or with --continue <file> the one whose
                       .pawl has the file. A file elsewhere gives its models no files unless --root names a folder
  --no-files           the models see no files
  --deadline <time>    how long each model may take: 90s, 10m; default 10m
  --steps <n>          how many turns each model may take; default 20
  -c, --continue       go on with what was left off
  --json               JSON lines on stdout: { type: 'ask.started', … }, { type: 'model.turn', modelId, text, steps, … },
                       { type: 'model.ended', modelId, text, interrupted, error?, proposedWrites, … }, { type: 'ask.ended',
                       interrupted, ranking?, judgeUsage?, path }; what is in proposed writes comes with 'model.ended' only.
                       Of show for each model { modelId, text, … }, of diff { model, diff }, of apply and rewind
                       { files: [{ path, change }] }

Exit codes: 0 all have answered · 1 some have not · 2 bad input · 130 interrupted, left to be continued

Examples:
  pawl ask "Why does the build fail?" --models anthropic/claude-sonnet-4-5,openai/gpt-5,google/gemini-2.5-pro
  git diff | pawl ask - --models openai/gpt-5,google/gemini-2.5-pro --no-files
  pawl ask --continue
  pawl ask diff && pawl ask apply sonnet
`;

const general = `Usage: pawl <command> [options]

Runs LLM agents that survive the death of their process: each step is recorded, and a run that was cut off goes on from
its last one.

Commands:
  run <agent module> [prompt]   run an agent to its answer
  list                          the runs that are waiting or live in other processes; --all: the ended ones too
  show <run id>                 one run: how far it is, or how it ended
  resume [run id]               go on with one interrupted run, or with all of them
  recover [agent module…]       go on with all interrupted runs, or with those of these agents
  cancel <run id>               end a run for good, wherever it is
  steer <run id> <text>         say something to the model of a run
  park <run id> [reason]        set a run aside, so that nobody takes it up
  unpark <run id>               give a parked run back
  doctor [agent module…]        read every record, and say what will become of it
  prune                         remove what nobody needs any more
  stats                         what the runs of an audit came to, by day, agent or caller
  ask <prompt>                  ask several models at once; then ask show, diff, apply <model>, rewind
  demo                          kill a run with SIGKILL twice, resume it, and show what ran again

Options:
  --store <store>  where runs are recorded; else $PAWL_STORE, else .pawl/runs.db. A SQLite file; a folder of plain files (a
                   new one is named with a / at its end); or postgres://user@host/database, with ?schema=… if it is not
                   \`pawl\` (the package pg must be installed; PGPASSWORD or PAWL_STORE keep the password off the command line)
  --audit <file>   where ended runs are remembered; else $PAWL_AUDIT, else audit.db beside the store when it is there
  --json           for machines: JSON on stdout (\`pawl <command> --help\` says of which shape). Texts in it are exact; elsewhere
                   what would steer a terminal or a CI log is taken out of them
  -h, --help       help; also \`pawl help <command>\`
  -v, --version    the version

Environment:
  PAWL_STORE       the store, when --store is not given
  PAWL_AUDIT       the audit, when --audit is not given
  PAWL_MODEL       provider/model: use this model for every tier, with the package @ai-sdk/<provider>
  PAWL_CODEC       a module that exports \`codec\`, as encrypt({ … }) makes it: the key of an encrypted store
  PAWL_STATE_HOME  where this user's commands keep which agent module a run was started with; else pawl in $XDG_STATE_HOME
                   or ~/.local/state (macOS: ~/Library/Application Support, Windows: %LOCALAPPDATA%)
  PAWL_DEBUG=1     print the stack of an error
  NO_COLOR         no colours

Exit codes: 0 ok · 1 the run failed, or something needs a person · 2 bad input, nothing was done · 130 interrupted, left to be resumed

Examples:
  pawl run agent.ts "What is new in the logs?"
  pawl list
  pawl resume
`;

const run = `Usage: pawl run <agent module> [prompt] [options]

Runs an agent to its answer, which goes to stdout; progress goes to stderr.

The agent module is a JavaScript or TypeScript file. Its default export is the agent (made with defineAgent). It may also
export \`models\` ({ tier: model } or a function), \`tools\` (for those that the agent names), \`prompt\` (used when none
is given), \`ports\` ({ budget, critic, palette, audit }, each as in createExecutor), \`compactor\`, \`contextTokens\`,
\`migrate\`, and \`codec\` (of the store: as encrypt({ … }) makes it).
Importing it runs its top level: keep the agent in a file of its own (agent.ts), apart from a program that starts runs
(main.ts). Its path is kept for \`pawl resume\` in a private file of this user ($PAWL_STATE_HOME), and never in the record.
Tools find the folder in which the run began as context.invocation.inputs.cwd.

PAWL_MODEL=provider/model takes the place of the module's models; the provider's key comes from its usual variable, for
example OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY.

Ctrl-C once stops after saving and says how to go on; twice exits now. Nothing recorded is lost either way.

Options:
  --run-id <id>    a name of your own for the run; the same request under it (agent, prompt, folder) resumes
                   it, or gives its result; any other is refused
  --store <store>  where the run is recorded; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   where it is remembered when its record is gone, made when it is not there; else $PAWL_AUDIT, else
                   audit.db beside the store when it is there. Not used for a module with an audit in its \`ports\`.
                   \`pawl\` never removes anything from it
  --json           JSON lines on stdout: { type: 'run.started', runId, agentId, store, resumed }, for each step
                   { type: 'step.done', runId, iteration, tools, usage }, and at the end
                   { type: 'run.ended', runId, status, output, error?, usage, iterations, … }

Examples:
  pawl run agent.ts "Summarise the open tickets"
  pawl run agent.ts --run-id nightly-2026-11-21 --store /var/lib/pawl/runs.db
  pawl run agent.ts --audit .pawl/audit.db
  PAWL_MODEL=anthropic/claude-sonnet-4-5 pawl run agent.ts "Summarise the open tickets"
`;

const list = `Usage: pawl list [options]

Lists the runs of a store that have not ended: interrupted ones, those that are live in some process, parked ones, and
records that cannot be read. Results of ended runs are kept for a week: \`pawl show <run id>\`.

With --all the runs that an audit remembers come after them, the latest first. One that has not ended there and has no
record either (its process died, and it was not durable or its record is elsewhere) is marked "no record".

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --all            also what the audit remembers
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store
  --since <time>   of the audit, runs that began since then: a date, or how long ago (30m, 12h, 7d)
  --limit <n>      of the audit, so many runs; default 50
  --json           { store, runs: [{ runId, status: 'live' | 'interrupted' | 'parked' | 'quarantined', … }] }, and with
                   --all { …, audit, audited: [{ runId, status, agentId, callerId, usage, spend?, … }] }

Examples:
  pawl list
  pawl list --all --since 7d
  pawl list --json | jq -r '.runs[] | select(.status == "interrupted").runId'
`;

const show = `Usage: pawl show <run id> [options]

Shows a run: its steps, the calls that were under way and what it was told and has not heard yet when it is waiting or live,
its result when it has ended; and what an audit knows of it: its phases, steps and calls when its record is gone, the runs it
began, what it cost.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store when it is there
  --json           { runId, status: 'live' | 'interrupted' | 'parked', pid?, module?, record, commands, audit? } or
                   { runId, status: 'ended', outcome, audit? }, outcome null when only the audit knows of it; 'lost': it
                   has not ended there, and there is no record. audit: { run, children: [{ run, children }] }

Examples:
  pawl show nightly-2026-11-21
  pawl show nightly-2026-11-21 --json | jq .outcome.output
  pawl show nightly-2026-11-21 --audit /var/lib/pawl/audit.db
`;

const resume = `Usage: pawl resume [run id] [options]

Goes on with an interrupted run from its last recorded step; without an id, with all of them, as \`pawl recover\` does. A run
that another process works on is left alone. A run that has ended meanwhile gives its result again. A run that an agent began
goes on with the run that began it, and is resumed by that one's id.

The agent module is the one with which this user started the run on this machine. Records name no code: a run that another
user, machine or program started needs --agent.

Options:
  --agent <file>   the agent module, if it was moved, or if pawl did not start the run here; importing it runs its top level
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   where the run is remembered when its record is gone, as of \`pawl run\`
  --json           JSON lines on stdout, as of \`pawl run\`; one that could not be resumed gives
                   { type: 'run.skipped', runId, reason }

Examples:
  pawl resume nightly-2026-11-21
  pawl resume --store /var/lib/pawl/runs.db
  pawl resume nightly-2026-11-21 --agent ./moved/agent.ts
`;

const stats = `Usage: pawl stats [options]

Sums up the runs of an audit: how many there were and how they ended, steps, tokens, dollars (where a budget counted them),
and working time. Days are those on which runs began, in UTC.

Options:
  --by <what>      day (the default), agent or caller
  --since <time>   runs that began since then: a date, or how long ago (30m, 12h, 7d)
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store
  --store <store>  the store beside which the audit lies; else $PAWL_STORE, else .pawl/runs.db
  --json           { audit, by, totals: [{ key, runs, statuses, usage, spend, iterations, elapsedMs }] }

Examples:
  pawl stats
  pawl stats --by caller --since 30d
  pawl stats --by agent --audit /var/lib/pawl/audit.db --json
`;

const demo = `Usage: pawl demo [options]

Surveys the documents of this package with the example agent (its model is a small program, not a language model). Kills it
with SIGKILL twice: while idempotent calls are at work, which run again with the same keys, and while a once call is at work,
which is not repeated. A third process ends the run. All of it happens in a temporary folder. Exit code 1 means that a recorded
call, or a once call, ran again.

Options:
  --verbose        each step, and for each call in which process it ran
  --json           { folder, store, report, runId, status, answer, kills, processes, recorded, once, repeated }

Examples:
  pawl demo
`;

const pages: Readonly<Record<CommandName, string>> = {
  run,
  list,
  show,
  resume,
  recover,
  cancel,
  steer,
  park,
  unpark,
  doctor,
  prune,
  stats,
  ask,
  demo,
};

/** The help text of `pawl`, or of one of its commands. */
export function helpFor(command: CommandName | undefined): string {
  return (command ? pages[command] : general).trimEnd();
}
