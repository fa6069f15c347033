import type { CommandRow } from './row.ts';

/** The commands that need no store of the user. */
export const otherCommands = {
  ask: {
    takes: '<prompt>',
    words: 2,
    usage: [
      'pawl ask <prompt> --models a,b,c [options]',
      'pawl ask --continue [checkpoint file] [options]',
      'pawl ask show [model] | diff [model] | apply <model> | rewind [--root <dir>]',
    ],
    does: 'ask several models at once; then ask show, diff, apply <model>, rewind',
    about: `Asks several models the same prompt at once and shows them side by side. Each turn is recorded in .pawl/ask.json: after Ctrl-C,
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
Ctrl-C once stops after saving and says how to continue; twice exits now.`,
    options: {
      models: 'the models to ask, with commas; default: all that the module exports',
      module: 'the module with models, tools, …; needed again for --continue',
      judge: 'ranks the answers, without their names; its own tokens are additional',
      root: `the folder to work on, with .pawl in it; default: this one, or with --continue <file> the one whose
.pawl has the file. A file elsewhere gives its models no files unless --root names a folder`,
      'no-files': 'the models see no files',
      deadline: 'how long each model may take: 90s, 10m; default 10m',
      steps: 'how many turns each model may take; default 20',
      continue: 'continue an unfinished prompt',
      json: `JSON lines on stdout: { type: 'ask.started', … }, { type: 'model.turn', modelId, text, steps, … },
{ type: 'model.ended', modelId, text, interrupted, error?, proposedWrites, … }, { type: 'ask.ended',
interrupted, ranking?, judgeUsage?, path }; the contents of proposed writes are in 'model.ended' only.
Of show for each model { modelId, text, … }, of diff { model, diff }, of apply and rewind
{ files: [{ path, change }] }`,
    },
    more: 'Exit codes: 0 all models answered · 1 some did not · 2 bad input · left to be continued: 75 by SIGTERM, 130 by Ctrl-C',
    examples: [
      'pawl ask "Why does the build fail?" --models anthropic/claude-sonnet-4-5,openai/gpt-5,google/gemini-2.5-pro',
      'git diff | pawl ask - --models openai/gpt-5,google/gemini-2.5-pro --no-files',
      'pawl ask --continue',
      'pawl ask diff && pawl ask apply sonnet',
    ],
    load: async () => (await import('../ask/ask-command.ts')).askCommand,
  },
  demo: {
    does: 'kill a run with SIGKILL twice, approve a call, and show what ran again',
    about: `Surveys the documents of this package with the example agent (its model is a small program, not a language model). Kills it
with SIGKILL twice: during idempotent calls, which run again with the same keys, and during a once call, which is not
repeated. Before it starts, this call waits for an approval: its process ends, and another process approves it. All of it
happens in a temporary folder. Exit code 1 means that a recorded call, or a once call, ran again, or that a call started
before its approval.`,
    options: {
      verbose: 'each step, and for each call in which process it ran',
      json: '{ folder, store, report, runId, status, answer, kills, processes, recorded, once, repeated }',
    },
    examples: ['pawl demo'],
    load: async () => (await import('../demo/demo-command.ts')).demoCommand,
  },
} satisfies Readonly<Record<string, CommandRow>>;
