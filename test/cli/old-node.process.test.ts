import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { nodeComplaint } from '../../src/cli/node-version.ts';
import { entryPoints } from '../toolchain/entry-points.ts';
import { emptyFolder } from './pawl.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** What runs in browsers asks for no Node. */
const nodeEntryPoints = entryPoints.filter(({ inBrowsers }) => !inBrowsers).map(({ name }) => name);

const versionOf = (node: string) =>
  spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout.trim();

/** A Node of this machine that is too old for the package. */
const oldNode = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/local/bin']
  .filter((folder) => !folder.includes('node_modules'))
  .map((folder) => join(folder, 'node'))
  .find((node) => existsSync(node) && nodeComplaint(versionOf(node)) !== undefined);
if (oldNode === undefined) console.warn('no Node before 22.18 on this machine: only a pretended one is tested');

const complaint = (version: string) =>
  `pawl needs Node 22.18 or newer, and this is ${version}: install one (https://nodejs.org) and put it first on the PATH`;

/** What Node prints of an error that nobody caught, without where it was thrown and the version of Node. */
function linesOf(stderr: string): string[] {
  return stderr.split('\n').flatMap((line) => (/pawl|Error:/.test(line) ? [line.replace(/^\[|\]$/g, '')] : []));
}

/** Runs code with the package at hand. */
function run(node: string, code: string, options: readonly string[] = []) {
  return spawnSync(node, [...options, '--input-type=module', '-e', code], { cwd: root, encoding: 'utf8' });
}

function pretending(version: string): string[] {
  const path = join(emptyFolder(), 'pretend.cjs');
  writeFileSync(
    path,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`,
  );
  return ['--require', path];
}

describe.each(nodeEntryPoints)('importing %s', (entryPoint) => {
  test.skipIf(oldNode === undefined)('on a real Node before 22.18 fails with the one line that says so', () => {
    const { status, stderr } = run(oldNode ?? '', `import '${entryPoint}'`);
    expect(linesOf(stderr)).toEqual([`Error: ${complaint(versionOf(oldNode ?? ''))}`]);
    expect(status).not.toBe(0);
  });

  test('on Node 22.17 rejects with an error whose message and stack are one line', () => {
    const code = `await import('${entryPoint}').catch(({ message, stack }) => console.log(JSON.stringify([message, stack])))`;
    const { stdout } = run(process.execPath, code, pretending('22.17.1'));
    expect(JSON.parse(stdout)).toEqual([complaint('22.17.1'), `Error: ${complaint('22.17.1')}`]);
  });

  test('on Node 22.18 works', () => {
    const { status, stderr } = run(process.execPath, `await import('${entryPoint}')`, pretending('22.18.0'));
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
