import { statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createAudit, type Logger, type SqliteAudit } from '../../index.ts';
import type { Arguments } from '../arguments.ts';
import type { CommandContext } from '../command.ts';
import { Failure, oneLine } from '../ui/failure.ts';
import { PAWL } from '../ui/shell-words.ts';
import { loggerOf } from '../ui/warnings.ts';
import { filePathOf } from './store-place.ts';

/** An audit, with the path that the user gave. */
export interface AuditFile extends SqliteAudit {
  readonly path: string;
}

/**
 * Opens the audit that records the runs of a command: the one that the user named, else the one beside the store.
 * @throws {Failure} if the named one cannot be used
 */
export async function auditForRuns({ args, output }: CommandContext): Promise<AuditFile | undefined> {
  const logger = loggerOf(output);
  const named = namedPath(args.audit);
  if (named === undefined) {
    const beside = pathBeside(args.store);
    return exists(beside) ? open(beside, logger) : undefined;
  }
  const audit = open(named, logger);
  await audit.runs({ limit: 1 });
  return audit;
}

/** Opens the audit for queries: the one that the user named, else the one beside the store; undefined if neither exists. */
export function auditToAsk({ args, output }: CommandContext): AuditFile | undefined {
  const named = namedPath(args.audit);
  const path = named ?? pathBeside(args.store);
  if (exists(path)) return open(path, { warn: (message) => output.say(oneLine(`pawl: warning: ${message}`)) });
  if (named === undefined) return undefined;
  throw noAudit(path);
}

/** Returns whether the user has named an audit, by `--audit` or by the environment. */
export function isAuditNamed({ audit }: Pick<Arguments, 'audit'>): boolean {
  return namedPath(audit) !== undefined;
}

/** Returns the error of a command for a missing audit file. */
export function noAudit(path: string): Failure {
  return new Failure(
    `there is no audit ${path}; \`${PAWL} run --audit <file>\` makes one, and --audit or PAWL_AUDIT names another`,
  );
}

/** Returns the path of the default audit file of a store, which is beside it. */
export function pathBeside(store: string | undefined): string {
  return join(dirname(filePathOf(store)), 'audit.db');
}

function namedPath(option: string | undefined): string | undefined {
  const given = option ?? (process.env.PAWL_AUDIT || undefined);
  if (given === undefined) return undefined;
  if (given === '' || given === ':memory:') {
    throw new Failure(
      `${JSON.stringify(given)} is not a file, so the audit would end with this process; name a file with --audit`,
    );
  }
  const path = resolve(given);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Failure(`the audit ${path} is a folder; name a file in it, for example ${join(path, 'audit.db')}`);
  }
  return path;
}

/** Commands delete nothing from an audit: the host that has `createAudit` decides how long runs are kept. */
function open(path: string, logger: Logger): AuditFile {
  const audit = createAudit({ path, retentionDays: Number.POSITIVE_INFINITY, logger });
  return Object.assign(audit, { path });
}

function exists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return false;
  }
}
