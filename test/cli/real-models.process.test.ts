import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { agentFile, emptyFolder, pawl } from './pawl.ts';

const server = new LLMock({ port: 0 });
const key = 'sk-secret-0123456789';

beforeAll(async () => void (await server.start()));
beforeEach(() => server.reset());
afterAll(() => server.stop());

/** The real provider package, against a server of our own. */
const greet = (...options: readonly string[]) =>
  pawl(['run', agentFile('greeter'), 'hello', ...options], {
    cwd: emptyFolder(),
    env: {
      PAWL_MODEL: 'anthropic/claude-sonnet-4-5',
      ANTHROPIC_API_KEY: key,
      ANTHROPIC_BASE_URL: `${server.url}/v1`,
    },
  });

test('PAWL_MODEL names a model of the AI SDK, which then answers', async () => {
  server.onMessage(/hello/, { content: 'Good morning.' });
  expect(await greet()).toMatchObject({ code: 0, stdout: 'Good morning.\n' });
});

test('a key is not printed when its provider quotes it', async () => {
  server.onMessage(/hello/, { error: { message: `the key ${key} is not valid` }, status: 401 });
  for (const ended of [await greet(), await greet('--json')]) {
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain('the key ANTHROPIC_API_KEY is not valid');
    expect(ended.stdout + ended.stderr).not.toContain(key);
  }
});
