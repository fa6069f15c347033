import { parseArgs } from 'node:util';
import { type Arguments, type OptionValues, options } from '../arguments.ts';
import { Failure } from '../ui/failure.ts';
import { type CommandName, commandNames, commands } from './commands.ts';

const always = ['help', 'version', 'json'];

/** What the user asked for, with a command that the table has. */
export interface CommandLine extends Arguments {
  readonly command: CommandName | undefined;
}

/** Parses the words and options of a command line. @throws {Failure} for unknown options and commands */
export function readCommandLine(argv: readonly string[]): CommandLine {
  const { values, positionals } = parse(argv);
  const isHelp = positionals[0] === 'help';
  const [word, ...words] = isHelp ? positionals.slice(1) : positionals;
  const command = commandOf(word);
  if (command) checkOptions(command, Object.keys(values));
  if (command && !isHelp) checkWords(command, words);
  const given = optionValues(values);
  return { ...given, command, words, help: isHelp || given.help };
}

function optionValues(values: Readonly<Record<string, string | boolean | undefined>>): OptionValues {
  const given = Object.entries(options).map(([name, { type }]) => [
    name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
    values[name] ?? (type === 'boolean' ? false : undefined),
  ]);
  return Object.fromEntries(given);
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true });
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split(/(?<=['"])\. |\n/);
    const plain = sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, '');
    const dash = argv[0] === 'run' || argv[0] === 'ask' ? ' (a prompt that begins with a dash goes after --)' : '';
    throw new Failure(`${plain}; \`pawl --help\` lists the options${dash}`, { cause: error });
  }
}

function commandOf(word: string | undefined): CommandName | undefined {
  if (word === undefined) return undefined;
  const found = commandNames.find((name) => name === word);
  if (found) return found;
  throw new Failure(`unknown command ${JSON.stringify(word)}; the commands are ${commandNames.join(', ')}`);
}

function checkOptions(command: CommandName, given: readonly string[]): void {
  const strange = given.find((name) => !always.includes(name) && !(name in commands[command].options));
  if (strange !== undefined) {
    throw new Failure(`\`pawl ${command}\` has no option --${strange}; \`pawl ${command} --help\` lists its options`);
  }
}

function checkWords(command: CommandName, words: readonly string[]): void {
  const { takes = '', words: most = takes.match(/[<[]/g)?.length ?? 0 } = commands[command];
  if (takes.includes('…') || words.length <= most) return;
  const extra = words.slice(most).join(' ');
  const hint =
    command === 'run' || command === 'ask'
      ? 'put the prompt in quotes'
      : `\`pawl ${command} --help\` says what it takes`;
  throw new Failure(`\`pawl ${command}\` does not take ${JSON.stringify(extra)}; ${hint}`);
}
