// Surveys a folder of text or source files and writes a report. Run it with: pawl run agent.ts <folder>
import { defineAgent } from 'pawl';
import { planner } from './planner.ts';
import { addNote, listFiles, publishReport, readFile } from './tools.ts';

export default defineAgent({
  id: 'survey',
  name: 'Survey',
  // Not a language model: see README.md. `PAWL_MODEL=provider/model` takes its place.
  model: planner,
  instructions: `You survey a folder of text and source files. The user's message is the path of the folder; your tools
already work in it. First call list_files. Then read every file with read_file, several at a time, and after each add a
note with add_note: what the file is, in one or two sentences, and what stands out. A file that read_file skips gets a
note too. When every file has its note, call publish_report once, with a report in Markdown: a table with one row a file,
a section a file, and what the files have in common. Answer with a summary of a few sentences and the report's path.`,
  tools: [listFiles, readFile, addNote, publishReport],
  // list_files names up to 600 files, and the planner reads up to eight of them in a step.
  maxSteps: 100,
  maxRuntimeMs: 3_600_000,
  toolConcurrency: 16,
});

export const tools = [listFiles, readFile, addNote, publishReport];

/** How long Studio shows the whole of a survey that has ended. */
export const retention = { records: 7 * 86_400_000 };

/** The folder to survey when none is named: the one where the run was begun. */
export const prompt = '.';
