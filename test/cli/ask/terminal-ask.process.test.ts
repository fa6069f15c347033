import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { bin } from '../../toolchain/programs.ts';
import { agentFile } from '../pawl.ts';
import { hasTerminal, TerminalSession } from '../terminal.ts';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** `pawl ask` with the three models of the fixture, on a terminal; they wait before their second turn, until `go` is called. */
function session(columns: number, rows: number, args: readonly string[] = ['Greet better.']) {
  const cwd = mkdtempSync(join(tmpdir(), 'pawl-ask-'));
  folders.push(cwd);
  writeFileSync(join(cwd, 'greeting.txt'), 'Hello!\n');
  const command = (words: readonly string[]) => [process.execPath, bin, 'ask', ...words, '--module', 'askers.ts'];
  writeFileSync(join(cwd, 'askers.ts'), `export * from ${JSON.stringify(agentFile('askers'))};\n`);
  const open = (words: readonly string[]) =>
    new TerminalSession(command(words), { columns, rows, cwd, env: { HOLD: 'go' } });
  return { terminal: open(args), again: open, go: () => writeFileSync(join(cwd, 'go'), '') };
}

/** Times and the spinner are those of the machine. */
const seen = (lines: readonly string[]) =>
  `\n${lines
    .join('\n')
    .replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, '⠿')
    .replace(/\d+\.\d s/g, '0.0 s')}\n`;
const CTRL_C = '\u0003';

describe.skipIf(!hasTerminal)('pawl ask on a terminal (fan-out 8)', { concurrent: true, timeout: 180_000 }, () => {
  test('in 160 columns a person sees the models side by side, and then the answers and what can be done (fan-out 8)', async ({
    expect,
  }) => {
    const { terminal, go } = session(160, 30);
    const secondTurns = /thinking +│ thinking +│ answered[\s\S]*1 step .*1 step .*1 step/;
    expect(seen(await terminal.shows(secondTurns))).toMatchInlineSnapshot(`
      "
      Greet better.                                                                                                                                              0.0 s

      ⠿ editor                                            │ ⠿ reader                                            │ ✓ quick
      thinking                                            │ thinking                                            │ answered
                                                          │                                                     │
                                                          │                                                     │ No.
                                                          │                                                     │
      1 step · 15 tokens · $0.002                         │ 1 step · 15 tokens · $0.002                         │ 1 step · 15 tokens · $0.002
      0.0 s · read_file                                   │ 0.0 s · list_files                                  │ 0.0 s
      "
    `);
    go();
    expect(await terminal.ended).toEqual({ code: 0, signal: null });
    expect(seen(await terminal.history())).toMatchInlineSnapshot(`
      "
      ✓ editor: answered · 3 steps · 45 tokens · $0.006 · 0.0 s · 1 write proposed · read_file, write_file
      ✓ reader: answered · 2 steps · 30 tokens · $0.004 · 0.0 s · list_files
      ✓ quick: answered · 1 step · 15 tokens · $0.002 · 0.0 s
      ## editor

      I greet the whole world now.

      ## reader

      There is one file, and it is fine.

      ## quick

      No.
      see the changes with: pawl ask diff
      apply them with: pawl ask apply editor
      "
    `);
    expect(terminal.isCursorHidden).toBe(false);
  });

  test('in 80 columns a person sees a line per model and chooses with the keys whose text is shown (fan-out 8)', async ({
    expect,
  }) => {
    const { terminal, go } = session(80, 24);
    await terminal.shows(/editor +thinking +15 tokens/);
    await terminal.shows(/reader +thinking +15 tokens/);
    await terminal.shows(/quick +answered/);
    terminal.send('\t');
    await terminal.shows('[reader]');
    terminal.send('\t');
    expect(seen(await terminal.shows(/\[quick\]/))).toMatchInlineSnapshot(`
      "
      Greet better.                                                              0.0 s

      ⠿ editor  thinking       15 tokens  0.0 s  $0.002
      ⠿ reader  thinking       15 tokens  0.0 s  $0.002
      ✓ quick   answered       15 tokens  0.0 s  $0.002

       editor  reader [quick]

      No.
      "
    `);
    go();
    expect(await terminal.ended).toEqual({ code: 0, signal: null });
    expect(seen(await terminal.history())).toMatchInlineSnapshot(`
      "
      ✓ editor: answered · 3 steps · 45 tokens · $0.006 · 0.0 s · 1 write proposed · r
      ead_file, write_file
      ✓ reader: answered · 2 steps · 30 tokens · $0.004 · 0.0 s · list_files
      ✓ quick: answered · 1 step · 15 tokens · $0.002 · 0.0 s
      ## editor

      I greet the whole world now.

      ## reader

      There is one file, and it is fine.

      ## quick

      No.
      see the changes with: pawl ask diff
      apply them with: pawl ask apply editor
      "
    `);
  });

  test('Ctrl-C saves, says how to continue, and gives the cursor back; the next process continues (fan-out 8)', async ({
    expect,
  }) => {
    const { terminal, again, go } = session(80, 24);
    await terminal.shows(/editor +thinking +15 tokens/);
    await terminal.shows(/reader +thinking +15 tokens/);
    await terminal.shows(/quick +answered/);
    terminal.send(CTRL_C);
    expect(await terminal.ended).toEqual({ code: 130, signal: null });
    expect(seen(await terminal.history())).toMatchInlineSnapshot(`
      "
      pawl: stopping once this is saved; again to exit now
      ■ editor: interrupted · 1 step · 15 tokens · $0.002 · 0.0 s · read_file
      ■ reader: interrupted · 1 step · 15 tokens · $0.002 · 0.0 s · list_files
      ✓ quick: answered · 1 step · 15 tokens · $0.002 · 0.0 s
      pawl: 2 models interrupted and saved; continue with: pawl ask --continue --modul
      e askers.ts
      "
    `);
    expect(terminal.isCursorHidden).toBe(false);
    go();
    const next = again(['--continue']);
    expect(await next.ended).toEqual({ code: 0, signal: null });
    expect(seen(await next.history())).toContain('I greet the whole world now.');
  });
});
