import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { describe, expect, test } from 'vitest';
import { eventStream, Journal } from './wire.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The entry point as a page loads it: one file, minified. */
async function bundled(entry: 'client' | 'react') {
  const bundle = await rolldown({
    input: `${root}src/${entry}/index.ts`,
    platform: 'browser',
    external: /^(?![./])/,
    logLevel: 'silent',
  });
  try {
    const { output } = await bundle.generate({
      format: entry === 'client' ? 'iife' : 'esm',
      name: 'pawl',
      minify: true,
    });
    const [{ code, imports, moduleIds }] = output;
    return {
      code,
      imports,
      modules: moduleIds.map((id) => id.replaceAll('\\', '/').replace(root, '')),
      files: output.length,
    };
  } finally {
    await bundle.close();
  }
}

/** All that the client may use of its host: what browsers, Node, Bun and Deno share. */
const web = () => {
  const { AbortController, AbortSignal, Headers, ReadableStream, TextDecoder, URLSearchParams } = globalThis;
  const { clearTimeout, crypto, performance, setTimeout } = globalThis;
  const classes = { AbortController, AbortSignal, Headers, ReadableStream, TextDecoder, URLSearchParams };
  return { ...classes, clearTimeout, crypto, performance, setTimeout };
};

describe('pawl/client in a browser', () => {
  test('is one file of its own modules only, below 8 KB gzipped (web 33)', async () => {
    const { code, imports, modules, files } = await bundled('client');
    expect({ imports, files }).toEqual({ imports: [], files: 1 });
    expect(modules.filter((path) => !path.startsWith('src/client/'))).toEqual([]);
    expect(modules.length).toBeGreaterThan(5);
    const bytes = gzipSync(code).byteLength;
    expect(bytes, `${bytes} bytes`).toBeLessThan(8_000);
    expect(bytes).toBeGreaterThan(1_000);
  });

  test('follows a run with nothing of Node: no process, no Buffer, no require (web 33)', async () => {
    const { code } = await bundled('client');
    const journal = new Journal('r', [{ type: 'run.started' }, { type: 'run.ended', status: 'ok', output: 'Hi' }]);
    const text = journal.from(null);
    const fetch = async (url: string, init: RequestInit) =>
      init.headers instanceof Headers && url === '/api/runs/r/events' ? eventStream(text) : expect.unreachable(url);
    const program = `${code};
      (async () => {
        const types = [];
        for await (const event of pawl.createClient({ url: '/api', fetch }).run('r').events()) types.push(event.type);
        return [typeof process, typeof Buffer, typeof require, ...types].join();
      })()`;
    const result = await runInNewContext(program, { ...web(), fetch });
    expect(result).toBe('undefined,undefined,undefined,run.started,run.ended');
  });

  test('is all of the package that pawl/react loads besides its own modules and the rule for pieces, with React and @xstate/store (web 33)', async () => {
    const { code, imports, modules } = await bundled('react');
    expect(imports.toSorted()).toEqual(['@xstate/store', 'react']);
    expect(modules.filter((path) => !/^src\/(client|react)\//.test(path))).toEqual(['src/run/journal/reply-view.ts']);
    // Pages that servers draw look for it on the first line.
    expect(code.trimStart()).toMatch(/^["']use client["'];/);
    const bytes = gzipSync(code).byteLength;
    expect(bytes, `${bytes} bytes`).toBeLessThan(12_000);
  });
});
