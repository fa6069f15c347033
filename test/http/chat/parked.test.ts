import type { UIMessage } from 'ai';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { toolOf } from '../../fixtures/host.ts';
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
});
