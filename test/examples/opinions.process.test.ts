import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LLMock } from '@copilotkit/aimock';
import { applyWrites, loadCheckpoint } from 'pawl/fan-out';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findingsOf, review } from '../../docs/examples/opinions/opinions.ts';
import { modelAt } from '../model/providers/provider-server.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));
const diff = readFileSync(join(project, 'docs/examples/opinions/change.diff'), 'utf8');
/** Each reviewer has a server of its own, so that it can be told apart. */
const servers = { sonnet: new LLMock({ port: 0 }), qwen: new LLMock({ port: 0 }), mistral: new LLMock({ port: 0 }) };
const judge = new LLMock({ port: 0 });
const all = [...Object.values(servers), judge];
let folder: string;

beforeAll(() => Promise.all(all.map((server) => server.start())));
beforeEach(() => {
  for (const server of all) server.reset();
  folder = mkdtempSync(join(tmpdir(), 'pawl-opinions-'));
  cpSync(join(project, 'src/executor'), join(folder, 'src/executor'), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));
afterAll(async () => {
  await Promise.all(all.map((server) => server.stop()));
});

/** The change, before the eyes of three reviewers: two behind an OpenAI-compatible provider, one behind Anthropic's. */
const reviewed = (options: { readonly signal?: AbortSignal } = {}) =>
  review({
    diff,
    root: folder,
    path: join(folder, '.pawl', 'review.json'),
    reviewers: {
      sonnet: modelAt('anthropic', servers.sonnet.url),
      qwen: modelAt('compatible', servers.qwen.url),
      mistral: modelAt('compatible', servers.mistral.url),
    },
    judge: modelAt('anthropic', judge.url),
    ...options,
  });

const readsSaving = { toolCalls: [{ name: 'read_file', arguments: '{"path":"src/executor/run/checkpointing.ts"}' }] };
const note = '// Saves of a run that is closing are dropped.\n';
const writesNote = {
  toolCalls: [{ name: 'write_file', arguments: JSON.stringify({ path: 'notes.md', content: note }) }],
};

/** What a server was told, without what names the model itself. */
function conversationsOf(server: LLMock): string {
  return JSON.stringify(server.getRequests().map(({ body }) => (body as { messages?: unknown } | null)?.messages));
}

function script(): void {
  servers.sonnet
    .on({ hasToolResult: false }, readsSaving)
    .on(
      { hasToolResult: true },
      { content: '- `src/executor/run/checkpointing.ts:57`: a save that waits is dropped silently.' },
    );
  servers.qwen.on(
    { hasToolResult: false },
    {
      content:
        'src/executor/run/checkpointing.ts:57 what waits is lost\nsrc/executor/run/active-run.ts:88 the flag is never taken back',
    },
  );
  servers.mistral.on({ hasToolResult: false }, writesNote).on({ hasToolResult: true }, { content: 'no findings' });
  judge.onMessage(/Rank the 3 answers/, { content: '{"order":[2,1,3],"reason":"It finds the most."}' });
}

describe('three reviewers of a change (the example opinions)', () => {
  test('read the files around it through the real providers, and what two of them find comes first', async () => {
    script();
    const { responses, ranking, interrupted } = await reviewed();
    expect(interrupted).toBe(false);
    expect(responses.map(({ modelId, error }) => [modelId, error])).toEqual([
      ['sonnet', undefined],
      ['qwen', undefined],
      ['mistral', undefined],
    ]);
    expect(findingsOf(responses)).toEqual([
      {
        at: 'src/executor/run/checkpointing.ts:57',
        says: { qwen: 'what waits is lost', sonnet: 'a save that waits is dropped silently.' },
      },
      { at: 'src/executor/run/active-run.ts:88', says: { qwen: 'the flag is never taken back' } },
    ]);
    expect(ranking).toEqual({ order: ['qwen', 'sonnet', 'mistral'], reason: 'It finds the most.' });
    expect(conversationsOf(servers.sonnet)).toContain('the one listener between its machine and its checkpointer');
    expect(conversationsOf(judge)).not.toMatch(/sonnet|qwen|mistral/);
    const [, , third] = responses;
    if (third) await applyWrites(third, { root: folder });
    expect(readFileSync(join(folder, 'notes.md'), 'utf8')).toBe(note);
  });

  test('are left in the middle and continued: who has answered is not asked again, the others continue from their last step', async () => {
    script();
    const leave = new AbortController();
    servers.mistral.reset();
    // The third is slow: by the time its answer comes, nobody waits for it.
    servers.mistral.on({ hasToolResult: false }, { ...writesNote });
    servers.mistral.on({ hasToolResult: true }, { content: 'no findings' }, { latency: 20_000 });
    const first = reviewed({ signal: leave.signal });
    const path = join(folder, '.pawl', 'review.json');
    const isReady = async () => {
      const found = await loadCheckpoint(path);
      const done = found?.responses.filter(({ completed }) => completed) ?? [];
      return done.length === 2 && found?.responses.some(({ modelId, steps }) => modelId === 'mistral' && steps === 1);
    };
    while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 5));
    leave.abort();
    expect((await first).interrupted).toBe(true);
    for (const server of all) server.reset();
    script();
    const { responses, interrupted } = await reviewed();
    expect(interrupted).toBe(false);
    expect(Object.values(servers).map((server) => server.getRequests().length)).toEqual([0, 0, 1]);
    expect(responses.map(({ steps }) => steps)).toEqual([2, 1, 2]);
    expect(responses[2]?.proposedWrites).toEqual([{ path: 'notes.md', content: note, base: null }]);
  });
});
