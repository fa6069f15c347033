import { otherCommands } from './ask-and-demo.ts';
import type { CommandRow } from './row.ts';
import { runCommands } from './runs.ts';
import { storeCommands } from './stores.ts';
import { waitCommands } from './waits.ts';

const table = { ...runCommands, ...waitCommands, ...storeCommands, ...otherCommands };
export type CommandName = keyof typeof table;

/** The table of commands: what each takes, its help, and where it is. */
export const commands: Readonly<Record<CommandName, CommandRow>> = table;
export const commandNames = Object.keys(table) as readonly CommandName[];
