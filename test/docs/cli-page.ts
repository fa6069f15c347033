import { helpFor } from '../../src/cli/help/help.ts';
import { commandNames, commands } from '../../src/cli/table/commands.ts';
import { exitCodeTable } from '../../src/cli/ui/exit-codes.ts';

const intro = [
  '# The command line',
  '',
  'What `pawl --help` and `pawl <command> --help` print, and the exit codes. Made from the table of commands by `npm run docs`.',
  '[When something is stuck](when-stuck.md) has the commands by symptom.',
  '',
];

const block = (text: string) => ['```text', text, '```', ''];

/** docs/cli.md: the help of each command, and the exit codes. */
export function cliPage(): string {
  const codes = Object.values(exitCodeTable).map(
    ({ code, means, supervisor }) => `| ${code} | ${means} | ${supervisor} |`,
  );
  const contents = commandNames.map(
    (name) => `| [\`${name}\`](#${name}) | ${commands[name].does.replaceAll('\n', ' ').replaceAll(/[|<]/g, '\\$&')} |`,
  );
  return `${[
    ...intro,
    ...['| command | what it does |', '| --- | --- |', ...contents, ''],
    ...['## Exit codes', '', '| exit code | meaning | what a supervisor does |', '| --- | --- | --- |', ...codes, ''],
    ...['## pawl', '', ...block(helpFor(undefined))],
    ...commandNames.flatMap((name) => [`## ${name}`, '', ...block(helpFor(name))]),
  ]
    .join('\n')
    .trimEnd()}\n`;
}
