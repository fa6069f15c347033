import type { UIMessage } from 'ai';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { gate, toolOf, until } from '../../fixtures/host.ts';
import { notingBudget } from '../../fixtures/noting-ports.ts';
import { chatHost, received } from './chat-host.ts';
import { read } from './page.ts';

const textIn = (parts: UIMessage['parts'] = []) =>
  parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('');

describe('a run that its budget parks', () => {
  test('ends its stream with an error that has the code; a page with a cursor gets the rest after the unpark (edges 19)', async () => {
    const limit = { calls: 1 };
    const host = chatHost({
      ...{ script: [callTool('look', {}), reply('Found.')], tools: [toolOf('look')] },
      ports: { budget: notingBudget({ refuse: () => limit.calls-- <= 0 }) },
    });
    const body = { id: 'chat', messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'Look' }] }] };
    const { all, isDone } = await received(await host.ask('/chat', { body }));
    const page = await read(all.map(({ chunk }) => chunk));
    expect([isDone, page.error]).toEqual([true, 'BUDGET_EXCEEDED: its budget is used up']);
    const data = { status: 'parked', code: 'BUDGET_EXCEEDED' };
    expect(page.message?.parts).toContainEqual(expect.objectContaining({ data: expect.objectContaining(data) }));

    limit.calls = 9;
    const runId = page.message?.id.slice(0, -2) ?? '';
    await host.executor.unpark(runId);
    await host.executor.recover();
    const headers = { 'last-event-id': all.at(-1)?.id ?? '' };
    const rest = await received(await host.ask('/chat/chat/stream', { headers }));
    const whole = await read(
      rest.all.map(({ chunk }) => chunk),
      page.message,
    );
    expect([whole.error, textIn(whole.message?.parts)]).toEqual([undefined, 'Found.']);
    expect(whole.message?.parts.filter(({ type }) => type.startsWith('tool-'))).toHaveLength(1);
    expect(JSON.stringify(whole.message?.parts[0])).not.toContain('BUDGET_EXCEEDED');
  });

  test('is over for its page with the next message, which is answered; so is one that was posted before it (edges 31)', async () => {
    for (const isBefore of [false, true]) {
      const passed = gate<string>();
      const refusals = [false, true];
      const host = chatHost({
        script: [callTool('work', {}), reply('Two.')],
        tools: [toolOf('work', 'read', () => passed.pass())],
        ports: { budget: notingBudget({ refuse: () => refusals.shift() ?? false }) },
      });
      const said = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] });
      const post = async (...messages: object[]) =>
        received(await host.ask('/chat', { body: { id: 'chat', messages } }));
      const one = post(said('1', 'Work'));
      await passed.reached;
      const before = isBefore ? post(said('1', 'Work'), said('2', 'And?')) : undefined;
      if (before) await until(async () => (await stateOf(host, '2')) === 'queued', 'the queue');
      passed.open('worked');
      const first = await read((await one).all.map(({ chunk }) => chunk));
      expect(first.error).toMatch(/budget is used up/);
      const { all } = await (before ?? post(said('1', 'Work'), said('2', 'And?')));
      const second = await read(all.map(({ chunk }) => chunk));
      expect([second.error, textIn(second.message?.parts)]).toEqual([undefined, 'Two.']);
      const runId = first.message?.id.slice(0, -2) ?? '';
      expect(await host.executor.find(runId)).toMatchObject({ outcome: { error: { code: 'BUDGET_EXCEEDED' } } });
      await expect(host.executor.unpark(runId)).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    }
  });
});

const stateOf = async ({ executor, agent }: ReturnType<typeof chatHost>, messageId: string) =>
  (await executor.thread('chat', { agent, callerId: 'ada' }).turn(messageId))?.state;
