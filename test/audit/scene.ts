import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createAudit } from 'pawl';
import { testClock } from 'pawl/testing';
import { afterAll } from 'vitest';
import type { AuditOptions } from '../../src/audit/audit.ts';
import { noon } from './run-facts.ts';

const folders: string[] = [];
const audits: { close(): Promise<void> }[] = [];

afterAll(async () => {
  for (const audit of audits.splice(0)) await audit.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A path for a file in a folder of its own, which goes when the tests of the file are over. */
export function freshPath(name = 'audit.db'): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-audit-'));
  folders.push(folder);
  return join(folder, name);
}

/** An audit that is closed when the tests are over, on a clock that stands still. */
export function openAudit(options: Partial<AuditOptions> = {}) {
  const clock = testClock(noon);
  const path = options.path ?? freshPath();
  const warnings: string[] = [];
  const logger = { warn: (message: string) => void warnings.push(message) };
  const audit = createAudit({ clock, logger, ...options, path });
  audits.push(audit);
  return { audit, clock, path, warnings };
}

/** Runs SQL on an audit's file behind its back. */
export function sql(path: string, text: string): Record<string, unknown>[] {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  try {
    return db.prepare(text).all();
  } finally {
    db.close();
  }
}
