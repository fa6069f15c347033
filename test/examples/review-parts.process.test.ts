import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import { findingsIn } from '../../docs/examples/review/checks.ts';
import { planner } from '../../docs/examples/review/planner.ts';
import { reportOf } from '../../docs/examples/review/report.ts';
import { texts } from './review-trial.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const compiled = { bin: join(root, 'dist/src/cli/bin.js'), agent: join(root, 'dist/docs/examples/review/agent.js') };

// `npm test` and `npm run coverage` build first.
test.runIf(existsSync(compiled.agent))(
  'the compiled review runs with the compiled command, as from a package',
  async () => {
    const cwd = texts();
    const env = { PATH: process.env.PATH, REVIEW_OUT: 'out' };
    const { stdout } = await promisify(execFile)(process.execPath, [compiled.bin, 'run', compiled.agent, 'texts'], {
      cwd,
      env,
    });
    expect(JSON.parse(stdout)).toMatchObject({ files: 19, findings: 6 });
  },
);

const user = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] });
const system = (content: string) => ({ role: 'system' as const, content });

test('the planner says the same streamed and at once, and takes everything from what it is sent', async () => {
  const prompt: LanguageModelV4Prompt = [system('Role: surveyor.\nYou look over a folder.'), user('texts')];
  const { content } = await planner.doGenerate({ prompt });
  expect(content).toEqual([{ type: 'tool-call', toolCallId: 'call-1-1', toolName: 'list_files', input: '{}' }]);
  const { stream } = await planner.doStream({ prompt });
  const calls: unknown[] = [];
  for await (const part of stream) if (part.type === 'tool-call') calls.push(part);
  expect(calls).toEqual(content);
});

test('the planner is no language model: it says so to other agents', async () => {
  const prompt = [system('You are a poet.'), user('Sing.')];
  await expect(planner.doGenerate({ prompt })).rejects.toThrow('set PAWL_MODEL');
});

test('a file full of one thing has ten findings at most', () => {
  const found = findingsIn('a.md', 'x \n'.repeat(100));
  expect(found).toHaveLength(10);
  expect(found.at(-1)).toEqual({ file: 'a.md', line: 10, what: 'space at the end of a line' });
});

test('a part whose reviewer failed is in the report, with the reason', () => {
  const survey = { folder: '/texts', leftOut: 2, parts: [{ part: 'a', about: '', files: ['a/1'] }] };
  const failed = [{ part: 'a', why: 'reviewer ended with status killed' }];
  expect(reportOf(survey, { reviews: [], failed })).toBe(
    '# Review of texts\n\n0 files in 1 part, 0 findings. 2 more files not looked at.\n\n## a: not reviewed\n\nreviewer ended with status killed\n',
  );
});
