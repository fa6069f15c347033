// Recorded runs as evals, for vitest-evals 0.16 and for evalite 0.19. Both take plain objects: this file needs neither of them.
// Its test calls both functions, and checks the form of what they return. It does not run the packages, which need Vitest 4.
//
//   describeEval('refund desk', { harness: replayHarness({ agent, model }) }, (it) => …)
//   evalite('refund desk', replayEval('runs.jsonl', { agent, model }))
import { type RecordedRun, type ReplayOptions, readRuns, replay } from 'pawl/lab';

/** The calls with an effect, which is what matters of a case. */
export function effectsOf(run: RecordedRun) {
  const calls = run.steps.flatMap((step) => step.calls);
  return calls.flatMap(({ name, input, effect }) => (effect === 'read' ? [] : [{ name, input }]));
}

/** A harness of vitest-evals: its input is a recorded run, its output the calls with an effect and the answer of a replay. */
export function replayHarness(options: ReplayOptions) {
  const run = async (recorded: RecordedRun, { signal }: { readonly signal?: AbortSignal } = {}) => {
    const report = await replay(recorded, { ...options, ...(signal ? { signal } : {}) });
    const { prompt, output, usage, error } = report;
    const calls = report.steps.flatMap((step) => step.calls);
    const events = [
      { type: 'message' as const, role: 'user' as const, content: prompt },
      ...calls.map(({ id, name, input }) => ({
        type: 'tool_call' as const,
        id,
        name,
        arguments: input as Record<string, never>,
      })),
      { type: 'message' as const, role: 'assistant' as const, content: output },
    ];
    return {
      output: { output, effects: effectsOf(report) },
      session: { events },
      usage,
      errors: error ? [{ code: error.code, message: error.message }] : [],
    };
  };
  return { name: 'pawl replay', run };
}

/** An eval of evalite: each run of a file is a case, which a candidate passes by making the recorded calls with an effect. */
export function replayEval(path: string, options: ReplayOptions) {
  const data = async () => {
    const cases: { input: RecordedRun; expected: ReturnType<typeof effectsOf> }[] = [];
    for await (const input of readRuns(path)) cases.push({ input, expected: effectsOf(input) });
    return cases;
  };
  const task = async (run: RecordedRun) => effectsOf(await replay(run, options));
  type Scored = { readonly output: unknown; readonly expected?: unknown };
  const scorer = ({ output, expected }: Scored) => (JSON.stringify(output) === JSON.stringify(expected) ? 1 : 0);
  return { data, task, scorers: [{ name: 'same effects', scorer }] };
}
