import type { CommandName } from '../arguments.ts';
import { PAWL } from '../ui/shell-words.ts';
import {
  answer,
  approve,
  backup,
  cancel,
  deny,
  doctor,
  park,
  prune,
  recover,
  restore,
  signal,
  steer,
  studio,
  unpark,
  waiting,
  work,
} from './help-operations.ts';

/** The text of `pawl ask --help`. */
const ask = `Usage: pawl ask <prompt> --models a,b,c [options]
       pawl ask --continue [checkpoint file] [options]
       pawl ask show [model] | diff [model] | apply <model> | rewind [--root <dir>]

Asks several models the same prompt at once and shows them side by side. Each turn is recorded in .pawl/ask.json: after Ctrl-C,
a crash or a model's deadline, \`pawl ask --continue\` asks only the models without an answer, from their last step. At the
end, the answers replace those in .pawl/answers.json; \`pawl ask --continue\` then asks models that failed again. The
prompt - is read from stdin.

\`pawl ask show\` prints the answers to the newest prompt again. The models may read the files of the folder, and propose
changes: \`pawl ask diff\` shows them. \`pawl ask apply <model>\` makes all changes of this model or none; before that,
nothing changes. \`pawl ask rewind\` undoes them.

Models are named provider/model (the package @ai-sdk/<provider> must be installed, and its key be set), or as in a --module
that exports \`models\` ({ name: model }), and may export \`tools\`, \`instructions\`, \`prices\` and \`judge\`.
Costs are shown if the package @pydantic/genai-prices is installed, or the module has prices.

On a wide terminal each model has a column; on others Tab and the arrow keys choose whose text is shown.
Ctrl-C once stops after saving and says how to continue; twice exits now.

Options:
  -m, --models <list>  the models to ask, with commas; default: all that the module exports
  --module <file>      the module with models, tools, …; needed again for --continue
  --judge <model>      ranks the answers, without their names; its own tokens are additional
  --root <dir>         the folder to work on, with .pawl in it; default: this one, or with --continue <file> the one whose
                       .pawl has the file. A file elsewhere gives its models no files unless --root names a folder
  --no-files           the models see no files
  --deadline <time>    how long each model may take: 90s, 10m; default 10m
  --steps <n>          how many turns each model may take; default 20
  -c, --continue       continue an unfinished prompt
  --json               JSON lines on stdout: { type: 'ask.started', … }, { type: 'model.turn', modelId, text, steps, … },
                       { type: 'model.ended', modelId, text, interrupted, error?, proposedWrites, … }, { type: 'ask.ended',
                       interrupted, ranking?, judgeUsage?, path }; the contents of proposed writes are in 'model.ended' only.
                       Of show for each model { modelId, text, … }, of diff { model, diff }, of apply and rewind
                       { files: [{ path, change }] }

Exit codes: 0 all models answered · 1 some did not · 2 bad input · left to be continued: 75 by SIGTERM, 130 by Ctrl-C

Examples:
  pawl ask "Why does the build fail?" --models anthropic/claude-sonnet-4-5,openai/gpt-5,google/gemini-2.5-pro
  git diff | pawl ask - --models openai/gpt-5,google/gemini-2.5-pro --no-files
  pawl ask --continue
  pawl ask diff && pawl ask apply sonnet
`;

const general = `Usage: pawl <command> [options]

Runs LLM agents that survive the death of their process: each step is recorded, and an interrupted run continues from
its last one.

Commands:
  run <agent module> [prompt]   run an agent to its answer
  list                          the runs that wait or are live in other processes; --all: the ended ones too
  show <run id>                 one run: its progress, or how it ended
  resume [run id]               continue one interrupted run, or all of them
  recover [agent module…]       continue all interrupted runs, or those of these agents
  work <agent module>           take due runs beside other processes, until it is stopped
  cancel <run id>               end a run permanently, wherever it is
  steer <run id> <text>         send a message to the model of a run
  waiting [run id]              what runs wait for: approvals, questions, events, times
  approve <run id> [wait id]    allow a call that waits for it; deny: refuse it
  answer <run id> <value>       answer a question of a run
  signal <event> <value>        send an event to the run that waits for it
  park <run id> [reason]        set a run aside, so that no process continues it
  unpark <run id>               release a parked run
  doctor [agent module…]        read every record, and say what the next recovery does with it
  prune                         delete expired results, and records on request
  backup <file>                 copy the store while processes write to it
  restore <backup>              make a store of a backup; its runs are parked
  studio                        a web page on the store: what runs, what waits for you, and why
  stats                         totals of the runs in an audit, by day, agent or caller
  ask <prompt>                  ask several models at once; then ask show, diff, apply <model>, rewind
  demo                          kill a run with SIGKILL twice, approve a call, and show what ran again

Options:
  --store <store>  where runs are recorded; else $PAWL_STORE, else .pawl/runs.db. A SQLite file, or
                   postgres://user@host/database, with ?schema=… if it is not \`pawl\`
                   (the package pg must be installed; PGPASSWORD or PAWL_STORE keep the password off the command line)
  --audit <file>   where ended runs are recorded; else $PAWL_AUDIT, else audit.db beside the store if it exists
  --json           for machines: JSON on stdout (\`pawl <command> --help\` describes it). Its texts are exact; all other output
                   has no control sequences for a terminal or a CI log
  -h, --help       help; also \`pawl help <command>\`
  -v, --version    the version

Environment:
  PAWL_STORE       the store, if --store is not given
  PAWL_AUDIT       the audit, if --audit is not given
  PAWL_MODEL       provider/model: use this model for every tier, with the package @ai-sdk/<provider>
  PAWL_CODEC       a module that exports \`codec\`, as encrypt({ … }) makes it: the key of an encrypted store
  PAWL_STATE_HOME  where the agent module of each of this user's runs is stored; else pawl in $XDG_STATE_HOME
                   or ~/.local/state (macOS: ~/Library/Application Support, Windows: %LOCALAPPDATA%)
  PAWL_DEBUG=1     print the stack of an error
  NO_COLOR         no colours

Exit codes: 0 ok · 1 the run failed, or something needs a person · 2 bad input, nothing was done · 75 the run waits, is parked
or was left at a SIGTERM, to be resumed · 130 left at Ctrl-C, to be resumed

Examples:
  pawl run agent.ts "What is new in the logs?"
  pawl list
  pawl resume
`;

const run = `Usage: pawl run <agent module> [prompt] [options]

Runs an agent until it answers. The answer goes to stdout; progress goes to stderr.

The agent module is a JavaScript or TypeScript file. Its default export is the agent (made with defineAgent). It may also
export \`models\` ({ tier: model } or a function), \`tools\` (for those that the agent names), \`prompt\` (the default
prompt), \`ports\` ({ budget, critic, palette, audit }, each as in createExecutor), \`compactor\`, \`contextTokens\`,
\`history\`, \`migrate\`, and \`codec\` (of the store: as encrypt({ … }) makes it). A run leaves the store with its end;
\`export const history = { keepMs: 86_400_000 }\` keeps it for a day, for the lists of \`pawl studio\` and \`pawl list --all\`.
Importing it runs its top level: keep the agent in its own file (agent.ts), apart from a program that starts runs
(main.ts). Its path is stored for \`pawl resume\` in a private file of this user ($PAWL_STATE_HOME), and never in the record.
Tools find the folder in which the run started as context.invocation.inputs.cwd.

PAWL_MODEL=provider/model replaces the module's models; the provider's key comes from its usual variable, for
example OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY.

On a terminal, \`pawl run\` and \`pawl resume\` of one run ask when the run waits for an approval (y, n, edit, later) or an
answer, and continue. Elsewhere, and for other waits, they exit with 75 and print the commands that answer and continue.

Ctrl-C once stops after saving and says how to continue; twice exits now. Nothing recorded is lost either way.

Options:
  --run-id <id>    your own id for the run; the same request with it (agent, prompt, folder) resumes
                   it, or gives its result; any other request is refused
  --store <store>  where the run is recorded; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   where the run stays recorded after its record is deleted; made if it does not exist; else $PAWL_AUDIT,
                   else audit.db beside the store if it exists. Not used for a module with an audit in its \`ports\`.
                   \`pawl\` never deletes anything from it
  --json           JSON lines on stdout: { type: 'run.started', runId, agentId, store, resumed }, for each step
                   { type: 'step.done', runId, iteration, tools, usage }, and at the end
                   { type: 'run.ended', runId, status, output, error?, usage, iterations, … }; a run that waits gives
                   { type: 'run.waiting', runId, waits: [as of \`pawl waiting\`], commands: […] }; after a crash
                   { type: 'run.unknown', runId, tools } names calls that may have had their effect

Examples:
  pawl run agent.ts "Summarise the open tickets"
  pawl run agent.ts --run-id nightly-2026-11-21 --store /var/lib/pawl/runs.db
  pawl run agent.ts --audit .pawl/audit.db
  PAWL_MODEL=anthropic/claude-sonnet-4-5 pawl run agent.ts "Summarise the open tickets"
`;

const list = `Usage: pawl list [options]

Lists the runs of a store that have not ended: interrupted ones, those that are live in some process, those that wait, parked
ones, and records that cannot be read. Results of ended runs are kept for a week: \`pawl show <run id>\`.

With --all they are followed by the ended runs whose records the store keeps (\`history\` of the agent module), then by those of an
audit, the latest first. A run that has not ended there and has no record
(its process died, and it was not durable or its record is elsewhere) is marked "no record".

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --all            also runs that have ended: those that the store keeps, and those of the audit
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store
  --since <time>   kept runs that ended since then, and runs of the audit that started since then: a date, or how long ago
                   (30m, 12h, 7d)
  --limit <n>      at most so many kept runs, and so many of the audit; default 50
  --json           { store, runs: [{ runId, status: 'live' | 'interrupted' | 'waiting' | 'parked' | 'quarantined', … }] }, and with
                   --all { …, ended: [{ runId, status, usage, iterations, endedAt, … }], audit?, audited?: [
                   { runId, status, agentId, callerId, usage, spend?, … }] }

Examples:
  pawl list
  pawl list --all --since 7d
  pawl list --json | jq -r '.runs[] | select(.status == "interrupted").runId'
`;

const show = `Usage: pawl show <run id> [options]

Shows a run. If it waits or is live: its steps, its running calls and the commands that it has not processed yet. If it has
ended: its result. From an audit: its phases, steps and calls after its record is deleted, its child runs, and its
cost.

Options:
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store if it exists
  --json           { runId, status: 'live' | 'interrupted' | 'waiting' | 'parked', pid?, module?, record, commands, audit? } or
                   { runId, status: 'ended', outcome, audit? }, outcome null if only the audit has it; 'lost': it has
                   not ended there, and there is no record. audit: { run, children: [{ run, children }] }

Examples:
  pawl show nightly-2026-11-21
  pawl show nightly-2026-11-21 --json | jq .outcome.output
  pawl show nightly-2026-11-21 --audit /var/lib/pawl/audit.db
`;

const resume = `Usage: pawl resume [run id] [options]

Continues an interrupted run from its last recorded step; without an id, all of them, as \`pawl recover\` does. A run that
another process works on does not change. A run that has ended meanwhile gives its result again. A sub-agent's run continues
with its parent run: use the id of the parent.

The agent module is the one with which this user started the run on this machine. Records name no code: a run of another
user, machine or program needs --agent.

Options:
  --agent <file>   the agent module, if it was moved, or if pawl did not start the run here; importing it runs its top level
  --store <store>  the store; else $PAWL_STORE, else .pawl/runs.db
  --audit <file>   where the run stays recorded after its record is deleted, as for \`pawl run\`
  --json           JSON lines on stdout, as of \`pawl run\`; one that cannot be resumed gives
                   { type: 'run.skipped', runId, reason }

Examples:
  pawl resume nightly-2026-11-21
  pawl resume --store /var/lib/pawl/runs.db
  pawl resume nightly-2026-11-21 --agent ./moved/agent.ts
`;

const stats = `Usage: pawl stats [options]

Sums up the runs of an audit: how many there were and how they ended, steps, tokens, dollars (where a budget counted them),
and working time. Days are those on which runs started, in UTC.

Options:
  --by <what>      day (the default), agent or caller
  --since <time>   runs that started since then: a date, or how long ago (30m, 12h, 7d)
  --audit <file>   the audit; else $PAWL_AUDIT, else audit.db beside the store
  --store <store>  the store of the default audit; else $PAWL_STORE, else .pawl/runs.db
  --json           { audit, by, totals: [{ key, runs, statuses, usage, spend, iterations, elapsedMs }] }

Examples:
  pawl stats
  pawl stats --by caller --since 30d
  pawl stats --by agent --audit /var/lib/pawl/audit.db --json
`;

const demo = `Usage: pawl demo [options]

Surveys the documents of this package with the example agent (its model is a small program, not a language model). Kills it
with SIGKILL twice: during idempotent calls, which run again with the same keys, and during a once call, which is not
repeated. Before it starts, this call waits for an approval: its process ends, and another process approves it. All of it
happens in a temporary folder. Exit code 1 means that a recorded call, or a once call, ran again, or that a call started
before its approval.

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
  work,
  cancel,
  steer,
  waiting,
  approve,
  deny,
  answer,
  signal,
  park,
  unpark,
  doctor,
  prune,
  backup,
  restore,
  stats,
  studio,
  ask,
  demo,
};

/** Returns the help text of `pawl`, or of one of its commands. Its examples can be typed as they are. */
export function helpFor(command: CommandName | undefined): string {
  const text = (command ? pages[command] : general).trimEnd();
  const [about = '', examples] = text.split('\nExamples:\n');
  return examples === undefined ? text : `${about}\nExamples:\n${examples.replaceAll('pawl ', `${PAWL} `)}`;
}
