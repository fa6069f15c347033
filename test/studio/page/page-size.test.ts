import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { madePage } from '../../toolchain/build-studio.ts';

const KB = 1_024;
const files = Object.entries(await madePage());
const raw = (text: string) => Buffer.byteLength(text);
const packed = (text: string) => gzipSync(text).length;
const sum = (sizes: readonly number[]) => sizes.reduce((total, each) => total + each, 0);

test('the page is at most 160 KB, and 54 KB with gzip (studio 32)', () => {
  expect(sum(files.map(([, text]) => raw(text)))).toBeLessThanOrEqual(160 * KB);
  expect(sum(files.map(([, text]) => packed(text)))).toBeLessThanOrEqual(54 * KB);
});

// What the sum leaves it: decisions 40 and 78.
test('the script of the page is at most 47 KB with gzip (studio 32)', () => {
  const scripts = files.filter(([name]) => name.endsWith('.js'));
  expect(scripts).toHaveLength(1);
  expect(packed(scripts[0]?.[1] ?? '')).toBeLessThanOrEqual(47 * KB);
});

test('the page names no other server, and parses no HTML (studio 16, 24)', () => {
  const all = files.map(([, text]) => text).join('\n');
  const addresses = [...all.matchAll(/https?:\/\/[\w.]+/g)].map(([address]) => address);
  expect(addresses.filter((address) => address !== 'http://www.w3.org')).toEqual([]);
  expect(all).not.toMatch(/dangerouslySetInnerHTML\s*[:=]\s*\{|\beval\(|new Function|document\.write/);
});

test('the package needs nothing more at run time because of the page (studio 32)', async () => {
  const { default: manifest } = await import('../../../package.json', { with: { type: 'json' } });
  const runtime = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)];
  expect(
    runtime.filter((name) => name.includes('preact') || name.includes('playwright') || name.includes('axe')),
  ).toEqual([]);
});
