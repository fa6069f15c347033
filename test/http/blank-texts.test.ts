import { createExecutor, defineAgent, memoryStore } from 'pawl';
import { agUiHandler } from 'pawl/ag-ui';
import { httpHandler } from 'pawl/http';
import { hang, reply, scriptedModel } from 'pawl/testing';
import { expect, onTestFinished, test } from 'vitest';

const helper = defineAgent({ id: 'helper', instructions: 'Help.' });
const png = { mediaType: 'image/png', data: 'iVBORw0KGgo=' };

function served(script = [reply('seen')]) {
  const model = scriptedModel(script);
  const executor = createExecutor({
    models: { fast: model },
    agents: [helper],
    store: memoryStore(),
    journal: true,
  });
  onTestFinished(() => executor.shutdown({ drainMs: 0 }));
  const options = { agents: { helper }, authorize: () => ({ callerId: 'ada', by: { id: 'ada' } }) };
  const [http, agUi] = [httpHandler(executor, options), agUiHandler(executor, options)];
  const post = (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' };
    const request = new Request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return path === '/' ? agUi(request) : http(request);
  };
  return { model, post };
}

const uiMessage = (...parts: object[]) => ({ id: 'm', role: 'user', parts });
const agUiInput = (content: unknown) => ({
  ...{ threadId: 't', runId: 'r', tools: [], context: [], state: {}, forwardedProps: {} },
  messages: [{ id: 'm', role: 'user', content }],
});

const text = (value: string) => ({ type: 'text', text: value });
const blank = [
  ['/chat', { id: 'c', messages: [uiMessage(text('  '))] }],
  ['/chat', { id: 'c', messages: [uiMessage(text('\n'), text(' '))] }],
  ['/chat', { id: 'c', messages: [uiMessage()] }],
  ['/', agUiInput(' ')],
  ['/', agUiInput([text('\t'), text(' ')])],
  ['/', agUiInput([])],
  ['/runs', { agent: 'helper', prompt: ' \n' }],
  ['/threads/t/messages', { id: 'm', text: ' ' }],
  ['/threads/t/messages', { id: 'm', parts: [text(' ')] }],
] as const;

test.for(blank)(
  'a text of nothing at POST %s is the mistake of the client, and no model is asked: %j (edges 13)',
  async ([path, body]) => {
    const { model, post } = served();
    const response = await post(path, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'BAD_REQUEST' });
    expect(model.calls).toEqual([]);
  },
);

test('a blank text that steers a run is the mistake of the client (edges 13)', async () => {
  const { post } = served([hang()]);
  const { runId } = (await (await post('/runs', { agent: 'helper', prompt: 'Go.' })).json()) as { runId: string };
  expect((await post(`/runs/${runId}/steer`, { text: ' ' })).status).toBe(400);
});

test.for([
  [
    '/chat',
    {
      id: 'c',
      messages: [
        uiMessage(text(' '), {
          type: 'file',
          mediaType: png.mediaType,
          url: `data:${png.mediaType};base64,${png.data}`,
        }),
      ],
    },
  ],
  ['/', agUiInput([text(' '), { type: 'image', source: { type: 'data', value: png.data, mimeType: png.mediaType } }])],
  ['/runs', { agent: 'helper', prompt: '', images: [png] }],
] as const)('an image beside a blank text at POST %s goes to the model alone (edges 9, 13)', async ([path, body]) => {
  const { model, post } = served();
  const response = await post(path, body);
  expect(response.ok).toBe(true);
  await response.text();
  await expect.poll(() => model.calls.length).toBe(1);
  expect(model.calls[0]?.messages[0]?.content).toMatchObject([{ type: 'file' }]);
});
