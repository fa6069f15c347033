import { expect } from 'vitest';

export type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

export const mountedTitle = 'starts a run, streams it, refuses what it must, and has its own paths (web 40)';

const headers = { authorization: 'Bearer ada', 'content-type': 'application/json' };

/**
 * A handler that is mounted below `/api/pawl`, seen by its clients.
 * @param open lets the tool of the run return that it waits in
 */
export async function checkMounted(ask: Fetch, open: () => unknown): Promise<void> {
  const body = JSON.stringify({ agent: 'worker', prompt: 'Größe' });
  const started = await ask('/api/pawl/runs', { method: 'POST', headers, body });
  expect(started.status).toBe(202);
  const { runId } = (await started.json()) as { runId: string };
  expect(started.headers.get('location')).toBe(`/api/pawl/runs/${runId}`);
  expect(await (await ask(`/api/pawl/runs/${runId}`, { headers })).json()).toMatchObject({ prompt: 'Größe' });

  const stream = await ask(`/api/pawl/runs/${runId}/events`, { headers });
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  // Nothing between holds it back: it is read while the run waits for the gate.
  expect((await reader?.read())?.value).toContain('retry: 1000');
  await open();
  let text = '';
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) text += piece.value;
  expect(text).toContain('"type":"run.ended"');

  expect((await ask('/api/pawl/runs', { method: 'POST', headers, body: '{' })).status).toBe(400);
  expect((await ask('/api/pawl/runs', { headers: { authorization: '' } })).status).toBe(401);
  const plain = { ...headers, 'content-type': 'text/plain' };
  expect((await ask('/api/pawl/runs', { method: 'POST', headers: plain, body })).status).toBe(415);
  expect((await ask('/api/pawl/nothing', { headers })).status).toBe(404);
  expect((await ask(`/api/pawl/runs/${encodeURIComponent('a/b')}`, { headers })).status).toBe(404);
}
