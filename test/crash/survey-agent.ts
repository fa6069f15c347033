import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Agent, defineAgent, type Model, type Tool } from 'pawl';
import surveyAgent, { tools } from '../../docs/examples/survey/agent.ts';
import { planner } from '../../docs/examples/survey/planner.ts';
import { type Failpoints, failingCall } from './failpoints.ts';
import { note } from './ledger.ts';

const runId = 'run-1';
const names = ['apples', 'beeches', 'cedars', 'dates', 'elms', 'figs', 'ginkgos', 'hazels'];

/** The folder that is surveyed: eight short texts. */
export function plantFolder(folder: string): void {
  mkdirSync(join(folder, 'texts'));
  for (const name of names) {
    const text = `# ${name}\n\n${`Of ${name} there is much to say, and this says a little of it. `.repeat(20)}\n`;
    writeFileSync(join(folder, 'texts', `${name}.md`), text);
  }
}

/** What the survey's notes say wrongly in the end: each file has one note, however often a call was repeated. */
export function judgeNotes(folder: string): string[] {
  const lines = readFileSync(join(folder, 'out', runId, 'notes.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
  const noted = lines.map((line) => (JSON.parse(line) as { file: string }).file).sort();
  const expected = names.map((name) => `${name}.md`);
  return JSON.stringify(noted) === JSON.stringify(expected) ? [] : [`the notes are on ${noted.join(', ')}`];
}

/** The survey of docs/examples, its tools in our ledger and with our failpoints. */
export function survey(folder: string, points: Failpoints): { agent: Agent; model: Model; prompt: string } {
  process.env.SURVEY_OUT = join(folder, 'out');
  // The crash test has its model among those of the executor.
  const { model: _, ...whole } = surveyAgent;
  const agent = defineAgent({ ...whole, tools: tools.map((tool) => watched(tool, { folder, points })) });
  return { agent, model: planner, prompt: join(folder, 'texts') };
}

function watched(tool: Tool, { folder, points }: { folder: string; points: Failpoints }): Tool {
  const { effect } = tool;
  return {
    ...tool,
    execute: (input, context) => {
      const { callId, attempt, idempotencyKey: key } = context;
      const line = { pid: process.pid, runId: context.runId, tool: tool.name, effect, callId, key, attempt };
      return failingCall(
        { effect, context, points },
        {
          begin: () => note(folder, { phase: 'begin', ...line }),
          // A repeated note says that it was there already. Transcripts that are compared must not depend on that.
          work: async () =>
            ((result) => (result === 'already there' ? 'added' : result))(await tool.execute(input, context)),
          end: () => note(folder, { phase: 'end', ...line }),
        },
      );
    },
  };
}
