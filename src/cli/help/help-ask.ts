/** What `pawl ask --help` says. */
export const ask = `Usage: pawl ask <prompt> --models a,b,c [options]
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
