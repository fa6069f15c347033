import { defineAgent, defineSkill } from 'pawl';
import { addFinding, readFile } from './tools.ts';

/** What a review puts to work, once for each part of the folder. Each is a run of its own, with a record of its own. */
export const reviewer = defineAgent({
  id: 'reviewer',
  name: 'Reviewer',
  description: 'Reviews one part of the folder. Its prompt is JSON: {"part": name, "files": [paths]}',
  instructions: `Role: reviewer.
You review the files that the user's message names. Read each with read_file, several at a time. Call add_finding for each
thing that a person should look at: unfinished work, what cannot be read well, what is empty. When all files are read, call
skill__title with the part's name and its findings, one a line. Answer with one line of JSON and nothing else:
{"part": name, "title": what the skill gave, "files": how many you could read, "findings": [{"file": path, "line": number, "what": text}]}`,
  tools: [readFile, addFinding],
  skills: ['title'],
  output: {
    type: 'object',
    properties: {
      part: { type: 'string' },
      title: { type: 'string' },
      files: { type: 'integer' },
      findings: {
        type: 'array',
        items: {
          type: 'object',
          properties: { file: { type: 'string' }, line: { type: 'integer' }, what: { type: 'string' } },
          required: ['file', 'line', 'what'],
        },
      },
    },
    required: ['part', 'title', 'files', 'findings'],
  },
  // A small part needs no more. For a larger one the critic allows more, as long as it sees progress.
  maxSteps: 6,
});

/** A prompt with inputs, used like a tool: one model call without tools. */
export const title = defineSkill({
  name: 'title',
  description: 'Gives the findings on one part of the folder a heading.',
  input: {
    type: 'object',
    properties: { part: { type: 'string' }, findings: { type: 'string', description: 'One a line; may be empty.' } },
    required: ['part', 'findings'],
  },
  instructions: `Role: titler.
Give the findings on a part of a folder a heading: at most twelve words, the part's name first. Answer with the heading alone.
Part: {{.part}}
Findings:
{{.findings}}`,
});
