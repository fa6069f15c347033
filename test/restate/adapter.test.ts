import { globSync, readFileSync } from 'node:fs';
import { createExecutor, memoryStore } from 'pawl';
import { restateRuns } from 'pawl/restate';
import { scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';

const sources = globSync('src/restate/*.ts').map((path) => readFileSync(path, 'utf8'));

describe('pawl/restate', () => {
  test('has fewer than 200 lines of code and imports only what pawl exports (engine 32)', () => {
    const code = sources.join('').replaceAll(/^\s*(?:\/\/|\/\*\*|\*).*$/gm, '');
    expect(code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThan(200);
    const imported = sources.flatMap((text) => [...text.matchAll(/from '([^']+)'/g)].map(([, from]) => from));
    expect(new Set(imported)).toEqual(
      new Set(['node:timers/promises', '@restatedev/restate-sdk', '../index.ts', './restate-runs.ts']),
    );
  });

  test('refuses an ingress that is not a URL', () => {
    const executor = createExecutor({ models: { fast: scriptedModel([]) }, store: memoryStore() });
    expect(() => restateRuns(executor, { ingress: 'localhost 8080' })).toThrow('ingress must be a URL');
  });
});
