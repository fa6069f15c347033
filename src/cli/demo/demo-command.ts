import type { Command } from '../command.ts';

export const demoCommand: Command = async () => 0;
