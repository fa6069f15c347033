import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { isInstalled } from './private-package.ts';

/** The private package that makes the site. */
export const siteFolder = fileURLToPath(new URL('../../site', import.meta.url));

/** Why the site cannot be built here; undefined if it can. */
export function whyNoSite(): string | undefined {
  return isInstalled(siteFolder) ? undefined : 'the packages of site/ are missing: npm run engines installs them';
}

/** Builds the site into `site/dist/www`. `ok` is false at a dead link, image or heading, which `output` names. */
export function buildSite(stdio: 'pipe' | 'inherit'): { readonly ok: boolean; readonly output: string } {
  const args = ['node_modules/@rspress/core/bin/rspress.js', 'build'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: siteFolder, stdio, encoding: 'utf8' });
  return { ok: status === 0, output: `${stdout ?? ''}${stderr ?? ''}` };
}

/** Why tests do not build the site now, which takes a minute; undefined if they do. */
export function whyNotNow(): string | undefined {
  return process.env.PAWL_TEST_ENGINES ? whyNoSite() : 'npm run test:engines builds it';
}

/** The title of tests that need the site: where it is not built, it says why they are skipped. */
export function inSite(title: string): string {
  const reason = whyNotNow();
  return reason === undefined ? title : `${title} (SKIPPED: ${reason})`;
}
