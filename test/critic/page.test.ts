import { readFileSync } from 'node:fs';
import { criticMachine } from 'pawl/machines';
import { expect, test } from 'vitest';

test('the page about the critic says of each state what the machine says', () => {
  const page = readFileSync(new URL('../../docs/critic.md', import.meta.url), 'utf8');
  const rows = Object.entries(criticMachine.states).map(
    ([name, { description }]) => `| \`${name}\` | ${description} |`,
  );
  expect(page).toContain(rows.join('\n'));
});
