import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { listFolder, readInside } from '../../docs/examples/survey/folder.ts';
import { appendNote, notesOf } from '../../docs/examples/survey/output-folder.ts';
import { planner } from '../../docs/examples/survey/planner.ts';
import { emptyFolder, jsonLines, Pawl, pawl } from '../cli/pawl.ts';

const agent = fileURLToPath(new URL('../../docs/examples/survey/agent.ts', import.meta.url));
const settings = (cwd: string, env: NodeJS.ProcessEnv = {}) => ({ cwd, env: { SURVEY_OUT: 'out', ...env } });
const survey = (cwd: string) => pawl(['run', agent, 'texts', '--run-id', 's'], settings(cwd));
const output = (cwd: string, file: string) => readFileSync(join(cwd, 'out/s', file), 'utf8');

/** A folder `texts`, of which the facts below were counted by hand. */
function texts(): string {
  const cwd = emptyFolder();
  const write = (file: string, content: string | Buffer) => writeFileSync(join(cwd, 'texts', file), content);
  mkdirSync(join(cwd, 'texts/deep'), { recursive: true });
  mkdirSync(join(cwd, 'texts/node_modules'));
  write('birds.md', '# Birds\n\nSwallows fly south | far. Swallows return.\n\n## Nests\n\nSwallows build nests.\n');
  write(
    'deep/flight.ts',
    '// Tells how swallows fly.\nexport const south = 1;\nexport function fly() {}\nexport { south as way };\n',
  );
  write('empty.txt', '');
  write('picture.bin', Buffer.from([1, 0, 2, 0]));
  write('node_modules/ignored.md', 'not looked at');
  write('.hidden', 'not looked at');
  return cwd;
}

describe.concurrent('a survey', { timeout: 180_000 }, () => {
  test('reports what is in the files', async () => {
    const cwd = texts();
    const { code, stdout } = await survey(cwd);
    expect(code).toBe(0);
    expect(stdout).toBe(
      `Surveyed texts: 4 files, 1 skipped, 11 lines, 26 words. The words that most of them share: swallows, south. The report is ${join(cwd, 'out/s/report.md')}\n`,
    );
    expect(output(cwd, 'report.md')).toBe(`# Survey of texts

4 files, 1 skipped, 11 lines, 26 words.

## Overview

| File | Lines | Words | Begins with |
| --- | ---: | ---: | --- |
| birds.md | 7 | 11 | Swallows fly south \\| far. |
| deep/flight.ts | 4 | 15 | Tells how swallows fly. |
| empty.txt | 0 | 0 |  |
| picture.bin |  |  | (binary, 4 bytes) |

## Files

### birds.md

7 lines, 11 words. Begins: “Swallows fly south | far.” Headings: Birds, Nests. Frequent words: swallows (3), nests (2).

### deep/flight.ts

4 lines, 15 words. Begins: “Tells how swallows fly.” Exports: south, fly, way. Frequent words: south (2).

### empty.txt

0 lines, 0 words.

### picture.bin

Skipped: binary, 4 bytes.

## Words that files share

| Word | Files | Times |
| --- | ---: | ---: |
| swallows | 2 | 4 |
| south | 2 | 3 |
`);
  });

  test('has one note for each file, skipped ones included', async () => {
    const cwd = texts();
    await survey(cwd);
    const notes = notesOf(output(cwd, 'notes.jsonl'));
    expect(notes.map(({ file }) => file).sort()).toEqual(['birds.md', 'deep/flight.ts', 'empty.txt', 'picture.bin']);
    expect(notes.find(({ file }) => file === 'picture.bin')?.text).toBe('Skipped: binary, 4 bytes.');
  });

  test('of a folder that is not there fails, and says so', async () => {
    const cwd = emptyFolder();
    const { code, stdout, stderr } = await survey(cwd);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/there is no folder .*texts/);
  });

  test('of a few hundred files stays within its steps', async () => {
    const cwd = emptyFolder();
    mkdirSync(join(cwd, 'texts'));
    for (let i = 0; i < 400; i++) writeFileSync(join(cwd, 'texts', `file-${i}.txt`), `Chapter ${i} of the book.\n`);
    const { code, stdout } = await survey(cwd);
    expect(code).toBe(0);
    expect(stdout).toContain('400 files, 400 lines, 2000 words.');
  });
});

/** What a survey that nobody disturbs says; made once. */
let undisturbed: Promise<{ readonly report: string; readonly notes: ReturnType<typeof notesOf> }> | undefined;
function undisturbedSurvey(): NonNullable<typeof undisturbed> {
  undisturbed ??= (async () => {
    const cwd = texts();
    await survey(cwd);
    return { report: output(cwd, 'report.md'), notes: notesOf(output(cwd, 'notes.jsonl')) };
  })();
  return undisturbed;
}

describe.concurrent('a survey that is killed and resumed', { timeout: 180_000 }, () => {
  // The journal has two lines a call; the survey of the four files makes ten calls.
  test.for([1, 4, 7, 10, 12, 14])('after %i lines of its journal gives the same report', async (lines) => {
    const whole = await undisturbedSurvey();
    const again = texts();
    const args = ['run', agent, 'texts', '--run-id', 's', '--json'];
    const run = new Pawl(args, settings(again, { SURVEY_PAUSE_MS: '500' }));
    const isReached = () => {
      try {
        return output(again, 'calls.jsonl').split('\n').length > lines;
      } catch {
        return false;
      }
    };
    while (!isReached()) await new Promise((resolve) => setTimeout(resolve, 3));
    run.child.kill('SIGKILL');
    expect((await run.ended).code).toBeNull();

    const elsewhere = { ...settings(emptyFolder(), { SURVEY_OUT: join(again, 'out') }) };
    const resumed = await pawl(['resume', 's', '--store', join(again, '.pawl/runs.db'), '--json'], elsewhere);
    expect(resumed).toMatchObject({ code: 0, stderr: '' });
    expect(jsonLines(resumed.stdout).at(-1)).toMatchObject({ type: 'run.ended', status: 'ok' });
    expect(output(again, 'report.md')).toBe(whole.report);
    const notes = notesOf(output(again, 'notes.jsonl'));
    expect(new Set(notes.map(({ key }) => key)).size).toBe(notes.length);
    expect(notes.map(({ file, text }) => file + text).sort()).toEqual(
      whole.notes.map(({ file, text }) => file + text).sort(),
    );
  });
});

describe('the tools of the survey', () => {
  test('read nothing outside of the folder', async () => {
    const cwd = texts();
    const folder = join(cwd, 'texts');
    writeFileSync(join(cwd, 'secret.txt'), 'secret');
    symlinkSync(join(cwd, 'secret.txt'), join(folder, 'link.txt'));
    symlinkSync(cwd, join(folder, 'up'));
    for (const file of [
      '../secret.txt',
      'deep/../../secret.txt',
      join(cwd, 'secret.txt'),
      'link.txt',
      'up/secret.txt',
      '..',
      '.',
      '',
    ]) {
      await expect(readInside(folder, file), file).rejects.toThrow(/is (?:not in|no file of) the folder/);
    }
    expect((await listFolder(folder)).files).toEqual(['birds.md', 'deep/flight.ts', 'empty.txt', 'picture.bin']);
  });

  test('work in a folder that is reached by a link', async () => {
    const cwd = texts();
    symlinkSync(join(cwd, 'texts'), join(cwd, 'link'));
    expect((await listFolder(join(cwd, 'link'))).files).toHaveLength(4);
    expect(await readInside(join(cwd, 'link'), 'empty.txt')).toMatchObject({ text: '' });
  });

  test('show the first 64 KiB of a long file, whole characters only, and skip one above 8 MiB', async () => {
    const cwd = texts();
    const folder = join(cwd, 'texts');
    writeFileSync(join(folder, 'long.txt'), `a${'é'.repeat(40_000)}`);
    writeFileSync(join(folder, 'huge.txt'), 'x'.repeat(8_388_609));
    const long = await readInside(folder, 'long.txt');
    expect(long).toMatchObject({ bytes: 80_001, isCut: true, text: `a${'é'.repeat(32_767)}` });
    expect(await readInside(folder, 'huge.txt')).toEqual({ file: 'huge.txt', bytes: 8_388_609, skipped: 'too large' });
  });

  test('add a note once for its key, also after half a line of one that died', async () => {
    const folder = emptyFolder();
    const note = (key: string) => ({ key, file: 'a.md', text: 'a note' });
    const answers = await Promise.all([appendNote(folder, note('1')), appendNote(folder, note('1'))]);
    expect(answers).toEqual(['added', 'already there']);
    const path = join(folder, 'notes.jsonl');
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"key":"2","fi`);
    await appendNote(folder, note('2'));
    await appendNote(folder, note('2'));
    expect(notesOf(readFileSync(path, 'utf8')).map(({ key }) => key)).toEqual(['1', '2']);
  });

  test('keep the output of a run whose id is no name for a folder in the output folder', async () => {
    const cwd = texts();
    const { code, stdout } = await pawl(['run', agent, 'texts', '--run-id', '../../up'], settings(cwd));
    expect(code).toBe(0);
    const report = /The report is (.*)/.exec(stdout)?.[1] ?? '';
    expect(report.startsWith(join(cwd, 'out/'))).toBe(true);
    expect(basename(report)).toBe('report.md');
  });
});

test('the planner says the same streamed and at once, and takes everything from the transcript', async () => {
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'texts' }] }];
  const { content } = await planner.doGenerate({ prompt });
  expect(content).toEqual([{ type: 'tool-call', toolCallId: 'call-1-1', toolName: 'list_files', input: '{}' }]);
  const { stream } = await planner.doStream({ prompt });
  const calls: unknown[] = [];
  for await (const part of stream) if (part.type === 'tool-call') calls.push(part);
  expect(calls).toEqual(content);
});
