// Reviews a folder of text or source files, part by part, and publishes a report. Run it with: pawl run agent.ts <folder>
import { createCompactor, createPalette, defineAgent } from 'pawl';
import { planner } from './planner.ts';
import { reviewer, title } from './reviewer.ts';
import { budget, critic } from './supervision.ts';
import { findReport, listFiles, publishReport, readFile } from './tools.ts';

export default defineAgent({
  id: 'review',
  name: 'Review',
  instructions: 'Each phase has its own.',
  tools: [listFiles, readFile, publishReport, findReport],
  subAgents: ['reviewer'],
  phases: [
    {
      name: 'survey',
      // It only reads: after a crash it begins again, and its steps are not stored.
      recovery: 'boundary',
      tools: ['list_files', 'read_file'],
      instructions: `Role: surveyor.
You look over a folder; the user's message is its path, and your tools work in it. First call list_files. Its parts are its
subfolders, and the files that lie in none (call that part "."). Read one file of each part that says what the part is about.
Answer with one line of JSON and nothing else:
{"folder": the path that list_files gave, "leftOut": the number it gave, "parts": [{"part": name, "about": one sentence, "files": [paths]}]}`,
    },
    {
      name: 'review',
      tools: ['agent__reviewer'],
      instructions: `Role: editor.
You have a folder reviewed. Call agent__reviewer once for each part of it, all in one message. Its prompt is one line of JSON:
{"part": name, "files": [paths]}. Then answer with one line of JSON and nothing else: {"reviews": [what the reviewers
answered], "failed": [{"part": name, "why": text} for each that did not succeed]}

The survey: {{.survey}}`,
    },
    {
      name: 'report',
      tools: ['publish_report', 'find_report'],
      instructions: `Role: publisher.
You write the report on a review: in Markdown, with a section for each part and a table of its findings. Call publish_report
once. When its outcome is unknown, ask find_report, and publish again only if there is no report. Then answer with one line
of JSON and nothing else: {"files": how many were reviewed, "findings": how many there are, "report": path of the report}

The survey: {{.survey}}
The reviews: {{.review}}`,
    },
  ],
  output: {
    type: 'object',
    properties: { files: { type: 'integer' }, findings: { type: 'integer' }, report: { type: 'string' } },
    required: ['files', 'findings', 'report'],
    additionalProperties: false,
  },
  // Soft, because a critic watches: past it, silence is an alarm.
  maxRuntimeMs: 900_000,
});

export const tools = [listFiles, readFile, publishReport, findReport];

/** Not a language model: see README.md. `PAWL_MODEL=provider/model` takes its place. */
export const models = { fast: planner };

/** The folder to review when none is named: the one where the run was begun. */
export const prompt = '.';

/** `pawl list --all`, `pawl show` and `pawl stats` know the runs for a month after their end. */
export const audit = true;
export const retention = { audit: '30d' };

export const ports = { budget, critic, palette: createPalette({ agents: [reviewer], skills: [title] }) };

/** The planner reads histories of any length, and could not sum one up. */
export const contextTokens = () => (process.env.PAWL_MODEL ? 128_000 : undefined);
export const compactor = createCompactor();
