import { readFileSync } from 'node:fs';
import type { ToolContext } from 'pawl';
import { expect, test } from 'vitest';

/** A member that is missing here does not compile. */
const members: { readonly [member in keyof ToolContext]: true } = {
  runId: true,
  callId: true,
  idempotencyKey: true,
  attempt: true,
  signal: true,
  invocation: true,
  runState: true,
  attachImages: true,
  progress: true,
  ask: true,
  waitFor: true,
  sleep: true,
  sleepUntil: true,
};

test('the page about tools has each member of the context of a call, and no other', () => {
  const page = readFileSync(new URL('../../docs/tools.md', import.meta.url), 'utf8');
  const [, section = ''] = page.split('\n## What a call gets\n');
  const fields = [...section.matchAll(/^\| (`[^|]+) \| /gm)].map(([, field = '']) => field);
  const named = fields.flatMap((field) => [...field.matchAll(/`(\w+)/g)].map(([, name]) => name));
  expect(named.toSorted()).toEqual(Object.keys(members).toSorted());
});
