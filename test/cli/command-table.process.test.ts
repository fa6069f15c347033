import { describe, expect, test } from 'vitest';
import { type OptionName, options } from '../../src/cli/arguments.ts';
import { helpFor } from '../../src/cli/help/help.ts';
import { readCommandLine } from '../../src/cli/table/command-line.ts';
import { commandNames, commands } from '../../src/cli/table/commands.ts';
import { PAWL } from '../../src/cli/ui/shell-words.ts';

/** An option as it is typed, with a value if it takes one. */
const typed = (name: OptionName) => (options[name].type === 'string' ? `--${name}=x` : `--${name}`);

describe('the table of commands', () => {
  test('has a command for each option', () => {
    const taken = new Set(commandNames.flatMap((name) => Object.keys(commands[name].options)));
    expect(Object.keys(options).filter((name) => !taken.has(name))).toEqual(['help', 'version']);
  });

  test.for(commandNames)('makes `pawl %s` take the options of its help, and no others', (command) => {
    const names = Object.keys(options) as OptionName[];
    const isTaken = (name: OptionName) => {
      try {
        readCommandLine([command, typed(name)]);
        return true;
      } catch {
        return false;
      }
    };
    const isInHelp = (name: OptionName) => new RegExp(`^  (-\\w, )?--${name} `, 'm').test(helpFor(command));
    const always = (name: OptionName) => name === 'help' || name === 'version';
    expect(names.filter(isTaken)).toEqual(names.filter((name) => always(name) || isInHelp(name)));
  });

  test.for([
    ['list', 0],
    ['show', 1],
    ['run', 2],
    ['ask', 2],
    ['restore', 1],
    ['answer', 3],
  ] as const)('makes `pawl %s` refuse more than %i words', ([command, most]) => {
    const words = Array.from({ length: most }, (_, index) => `word${index}`);
    expect(readCommandLine([command, ...words]).words).toEqual(words);
    expect(() => readCommandLine([command, ...words, 'more'])).toThrow('does not take "more"');
  });

  test('makes `pawl recover` and `pawl doctor` take any number of words', () => {
    const files = Array.from({ length: 50 }, (_, index) => `agent-${index}.ts`);
    expect(readCommandLine(['recover', ...files]).words).toEqual(files);
    expect(readCommandLine(['doctor', ...files]).words).toEqual(files);
  });

  test('gives the value of an option by its name in camel case, and false for a flag that is not given', () => {
    const { olderThan, dryRun, parked, reason } = readCommandLine(['prune', '--older-than', '3d', '--dry-run']);
    expect({ olderThan, dryRun, parked, reason }).toEqual({ olderThan: '3d', dryRun: true, parked: false });
  });
});

describe('the command in a line that a person can type', () => {
  test('is in the examples of each help', () => {
    const [, examples = ''] = helpFor('waiting').split('\nExamples:\n');
    expect(examples).toMatch(new RegExp(`^  ${PAWL} waiting\n`));
    expect(helpFor('waiting')).toMatch(/^Usage: pawl waiting/);
  });
});
