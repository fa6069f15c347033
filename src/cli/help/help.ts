import { type Option, type OptionName, options } from '../arguments.ts';
import { type CommandName, commandNames, commands } from '../table/commands.ts';
import type { CommandRow } from '../table/row.ts';
import { exitCodeTable } from '../ui/exit-codes.ts';
import { PAWL } from '../ui/shell-words.ts';

/** Returns the help text of `pawl`, or of one of its commands. Its examples can be typed as they are. */
export function helpFor(command: CommandName | undefined): string {
  const { usage = [`pawl ${wordsOf(command)} [options]`], about, options: taken, more, examples } = pageOf(command);
  const rows = Object.entries(taken).map(([name, text]) => [flagsOf(name as OptionName), text] as const);
  return [
    `Usage: ${usage.join('\n       ')}`,
    about,
    ...(command === undefined ? [`Commands:\n${listed(commandNames.map(lineOf), 28)}`] : []),
    `Options:\n${listed(rows, 19)}`,
    ...(more === undefined ? [] : [more]),
    `Examples:\n${examples.map((line) => `  ${line.replaceAll('pawl ', `${PAWL} `)}`).join('\n')}`,
  ].join('\n\n');
}

function pageOf(
  command: CommandName | undefined,
): Pick<CommandRow, 'usage' | 'about' | 'options' | 'more' | 'examples'> {
  return command === undefined ? general : commands[command];
}

function lineOf(command: CommandName): readonly [string, string] {
  return [wordsOf(command), commands[command].does];
}

function wordsOf(command: CommandName | undefined): string {
  if (command === undefined) return '<command>';
  const { takes } = commands[command];
  return takes === undefined ? command : `${command} ${takes}`;
}

function flagsOf(name: OptionName): string {
  const { short, value }: Option = options[name];
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` <${value}>`}`;
}

/** Returns labels, and their texts in a column. A label longer than `widest` moves the column only in its own line. */
function listed(rows: readonly (readonly [label: string, text: string])[], widest: number): string {
  const width = Math.max(...rows.map(([{ length }]) => (length > widest ? 0 : length)));
  const indent = `\n${' '.repeat(width + 4)}`;
  return rows.map(([label, text]) => `  ${label.padEnd(width)}  ${text.replaceAll('\n', indent)}`).join('\n');
}

function exitCodeLines(): string {
  const rows = Object.values(exitCodeTable).map(({ code, means }) => `  ${String(code).padEnd(5)}${means}`);
  return rows.join('\n').replaceAll('`', '');
}

const general = {
  usage: ['pawl <command> [options]'],
  about: `Runs LLM agents that survive the death of their process: each step is recorded, and an interrupted run continues from
its last one.`,
  options: {
    store: `where runs are recorded; else $PAWL_STORE, else .pawl/runs.db. A SQLite file, or
postgres://user@host/database, with ?schema=… if it is not \`pawl\`
(the package pg must be installed; PGPASSWORD or PAWL_STORE keep the password off the command line)`,
    audit: 'keep runs for 90 days after their end, and count them (`pawl show`, `pawl stats`)',
    json: `for machines: JSON on stdout (\`pawl <command> --help\` describes it). Its texts are exact; all other output
has no control sequences for a terminal or a CI log`,
    help: 'help; also `pawl help <command>`',
    version: 'the version',
  },
  more: `Environment:
  PAWL_STORE       the store, if --store is not given
  PAWL_AUDIT=1     --audit for each command that has it
  PAWL_MODEL       provider/model: use this model in place of the module's, with the package @ai-sdk/<provider>
  PAWL_CODEC       a module that exports \`codec\`, as encrypt({ … }) makes it: the key of an encrypted store
  PAWL_STATE_HOME  where the agent module of each of this user's runs is stored; else pawl in $XDG_STATE_HOME
                   or ~/.local/state (macOS: ~/Library/Application Support, Windows: %LOCALAPPDATA%)
  PAWL_DEBUG=1     print the stack of an error
  NO_COLOR         no colours

Exit codes:
${exitCodeLines()}`,
  examples: ['pawl run agent.ts "What is new in the logs?"', 'pawl list', 'pawl resume'],
};
