import { describe, expect, test } from 'vitest';
import { redactedEvent } from '../../src/executor/host/redaction.ts';
import type { RunEventBody } from '../../src/run/events/body.ts';
import { type EventTable, hasOrigin, keepOf, runEventTable } from '../../src/run/events/table.ts';
import type { Wait } from '../../src/run/waits/wait.ts';
import type { ErrorData } from '../../src/values/error-data.ts';
import { Redactor } from '../../src/values/redact.ts';

const SECRET = 'sk-hunter2';
const redactor = new Redactor((text) => text.replaceAll(SECRET, '[key]'), 'event');
const error: ErrorData = { name: 'Error', code: 'MODEL', message: `no ${SECRET}` };
const hidden: ErrorData = { ...error, message: 'no [key]' };
const call = { step: 1, callId: 'c', name: 'look', effect: 'read' } as const;
const lookCall = { type: 'tool-call', toolCallId: SECRET, toolName: 'look', input: { at: SECRET } } as const;
const usage = { inputTokens: 1, outputTokens: 2, reasoningTokens: 3, cacheReadTokens: 4, cacheWriteTokens: 5 };

const wait: Wait & { kind: 'approval' } = {
  ...{ id: 'w', createdAt: 1, dueAt: 2, step: 1, callId: 'c', tool: 'look', kind: 'approval' },
  ...{ digest: 'd', quorum: 2, votes: [], editable: false, onExpiry: 'deny' },
};

type Types = RunEventBody['type'];
type Body<Type extends Types> = Extract<RunEventBody, { readonly type: Type }>;

/** One event of each type, and what of it is passed on. */
const samples: { readonly [Type in Types]: readonly [event: Body<Type>, redacted: Body<Type>] } = {
  'run.started': same({ type: 'run.started', owner: 'host/1', revision: 1 }),
  'run.resumed': same({ type: 'run.resumed', iteration: 1, attempts: 2 }),
  'run.left': same({ type: 'run.left', why: 'shutdown', owner: 'host/1', revision: 3 }),
  'run.status': same({ type: 'run.status', state: 'running' }),
  'run.parked': [
    { type: 'run.parked', code: 'PARKED', reason: `see ${SECRET}` },
    { type: 'run.parked', code: 'PARKED', reason: 'see [key]' },
  ],
  'run.unparked': same({ type: 'run.unparked', by: { id: 'ada' } }),
  'run.retried': [
    { type: 'run.retried', status: 'error', error, by: { id: 'ada' } },
    { type: 'run.retried', status: 'error', error: hidden, by: { id: 'ada' } },
  ],
  'run.ended': [
    { type: 'run.ended', status: 'error', output: SECRET, error },
    { type: 'run.ended', status: 'error', output: '[key]', error: hidden },
  ],
  'step.started': same({ type: 'step.started', step: 1 }),
  'step.done': same({ type: 'step.done', step: 1, usage, tools: ['look'] }),
  'step.reset': same({ type: 'step.reset', step: 1 }),
  'step.snapshot': [
    { type: 'step.snapshot', step: 1, content: [{ type: 'text', text: SECRET }, lookCall] },
    {
      type: 'step.snapshot',
      step: 1,
      content: [
        { type: 'text', text: '[key]' },
        { ...lookCall, input: { at: '[key]' } },
      ],
    },
  ],
  'model.delta': [
    { type: 'model.delta', step: 1, block: 0, offset: 4, kind: 'text', text: SECRET },
    { type: 'model.delta', step: 1, block: 0, offset: 4, kind: 'text', text: '[key]' },
  ],
  'model.file': [
    { type: 'model.file', step: 1, block: 2, mediaType: SECRET },
    { type: 'model.file', step: 1, block: 2, mediaType: '[key]' },
  ],
  'model.source': [
    { type: 'model.source', step: 1, source: { sourceType: 'url', id: 's', url: `https://a.example/${SECRET}` } },
    { type: 'model.source', step: 1, source: { sourceType: 'url', id: 's', url: 'https://a.example/[key]' } },
  ],
  'model.fallback': [
    { type: 'model.fallback', step: 1, attempt: 2, from: 'acme/large', to: 'acme/small', error },
    { type: 'model.fallback', step: 1, attempt: 2, from: 'acme/large', to: 'acme/small', error: hidden },
  ],
  'model.retry': [
    { type: 'model.retry', model: 'acme/large', step: 1, attempt: 2, delayMs: 3, error },
    { type: 'model.retry', model: 'acme/large', step: 1, attempt: 2, delayMs: 3, error: hidden },
  ],
  'tool.input': [
    { type: 'tool.input', step: 1, block: 1, offset: 0, callId: 'c', name: 'look', text: SECRET },
    { type: 'tool.input', step: 1, block: 1, offset: 0, callId: 'c', name: 'look', text: '[key]' },
  ],
  'tool.started': [
    { type: 'tool.started', ...call, input: { at: [SECRET, 1] }, attempt: 1 },
    { type: 'tool.started', ...call, input: { at: ['[key]', 1] }, attempt: 1 },
  ],
  'tool.progress': [
    { type: 'tool.progress', callId: 'c', name: 'look', progress: SECRET },
    { type: 'tool.progress', callId: 'c', name: 'look', progress: '[key]' },
  ],
  'tool.done': [
    { type: 'tool.done', ...call, output: { type: 'text', value: SECRET }, ms: 7, isLate: true },
    { type: 'tool.done', ...call, output: { type: 'text', value: '[key]' }, ms: 7, isLate: true },
  ],
  'call.unknown': same({ type: 'call.unknown', step: 1, callId: 'c1', name: 'pay', attempt: 1 }),
  'phase.started': same({ type: 'phase.started', index: 0, name: 'a' }),
  'phase.done': [
    { type: 'phase.done', index: 0, name: 'a', output: SECRET },
    { type: 'phase.done', index: 0, name: 'a', output: '[key]' },
  ],
  'workflow.transition': [
    { type: 'workflow.transition', step: 1, from: 'a', to: SECRET, event: SECRET, took: [SECRET] },
    { type: 'workflow.transition', step: 1, from: 'a', to: '[key]', event: '[key]', took: ['[key]'] },
  ],
  'workflow.ignored': [
    { type: 'workflow.ignored', step: 1, event: SECRET },
    { type: 'workflow.ignored', step: 1, event: '[key]' },
  ],
  'workflow.undelivered': [
    { type: 'workflow.undelivered', step: 1, to: SECRET, event: SECRET, error },
    { type: 'workflow.undelivered', step: 1, to: '[key]', event: '[key]', error: hidden },
  ],
  'workflow.emitted': [
    { type: 'workflow.emitted', step: 1, event: { type: 'a', text: SECRET } },
    { type: 'workflow.emitted', step: 1, event: { type: 'a', text: '[key]' } },
  ],
  'workflow.action-failed': [
    { type: 'workflow.action-failed', name: 'a', error: { name: 'Error', code: 'X', message: SECRET } },
    { type: 'workflow.action-failed', name: 'a', error: { name: 'Error', code: 'X', message: '[key]' } },
  ],
  'phase.skipped': same({ type: 'phase.skipped', index: 0, name: 'a' }),
  'steer.queued': [{ type: 'steer.queued' }, { type: 'steer.queued' }],
  'steer.applied': [
    { type: 'steer.applied', count: 2, texts: [SECRET, 'b'] },
    { type: 'steer.applied', count: 2, texts: ['[key]', 'b'] },
  ],
  'wait.opened': [
    { type: 'wait.opened', wait: { ...wait, prompt: SECRET }, input: { at: SECRET } },
    { type: 'wait.opened', wait: { ...wait, prompt: '[key]' }, input: { at: '[key]' } },
  ],
  'wait.answered': [
    {
      type: 'wait.answered',
      waitId: 'w',
      kind: 'approval',
      how: 'approve',
      by: { id: 'ada', name: SECRET },
      votes: 1,
      callId: 'c',
    },
    {
      type: 'wait.answered',
      waitId: 'w',
      kind: 'approval',
      how: 'approve',
      by: { id: 'ada', name: '[key]' },
      votes: 1,
      callId: 'c',
    },
  ],
  'wait.refused': [
    { type: 'wait.refused', waitId: 'w', code: 'ANSWER_REFUSED', reason: SECRET, by: { id: 'ada' } },
    { type: 'wait.refused', waitId: 'w', code: 'ANSWER_REFUSED', reason: '[key]', by: { id: 'ada' } },
  ],
  'wait.expired': same({ type: 'wait.expired', waitId: 'w', kind: 'approval', callId: 'c' }),
  'wait.withdrawn': same({ type: 'wait.withdrawn', waitId: 'w', kind: 'approval', callId: 'c' }),
  'run.waiting': same({ type: 'run.waiting', waits: 1, wakeAt: 5 }),
  'run.woken': [{ type: 'run.woken' }, { type: 'run.woken' }],
  'lease.lost': same({ type: 'lease.lost' }),
  'checkpoint.saved': same({ type: 'checkpoint.saved', iteration: 1, ms: 2 }),
  'checkpoint.failed': [
    { type: 'checkpoint.failed', error },
    { type: 'checkpoint.failed', error: hidden },
  ],
  'events.dropped': same({ type: 'events.dropped', count: 2 }),
};

function same<Event>(event: Event): readonly [Event, Event] {
  return [event, event];
}

const typesWhere = (is: (type: Types) => boolean) => (Object.keys(runEventTable) as Types[]).filter(is);

describe('the table of events', () => {
  test('does not compile without a row for each type, and for each field that may hold a text', () => {
    type Placed = { readonly type: 'order.placed'; readonly item: string; readonly count: number };
    const rest = { audit: 'skip', endsText: false, keep: 'none' } as const;
    const good = { ...runEventTable, 'order.placed': { redact: { item: 'text' }, ...rest } } satisfies EventTable<
      RunEventBody | Placed
    >;
    // @ts-expect-error the type order.placed has no row
    runEventTable satisfies EventTable<RunEventBody | Placed>;
    // @ts-expect-error the field item has no row
    ({ 'order.placed': { redact: {}, ...rest } }) satisfies EventTable<Placed>;
    // @ts-expect-error the type order.lost does not exist
    ({ ...good, 'order.lost': { redact: {}, ...rest } }) satisfies EventTable<RunEventBody | Placed>;
    expect(good['order.placed'].redact).toEqual({ item: 'text' });
  });

  test('does not compile with a redaction that does not fit its field, or that shows what a model or a host wrote', () => {
    type Odd = { readonly type: 'odd'; readonly error: ErrorData; readonly kind: 'a' | 'b'; readonly isOdd?: true };
    const rest = { audit: 'skip', endsText: false, keep: 'none' } as const;
    // @ts-expect-error an error is redacted as an error
    ({ odd: { redact: { error: 'text', kind: 'public' }, ...rest } }) satisfies EventTable<Odd>;
    // @ts-expect-error an error is not public
    ({ odd: { redact: { error: 'public', kind: 'public' }, ...rest } }) satisfies EventTable<Odd>;
    // @ts-expect-error a word of a fixed set cannot become any text
    ({ odd: { redact: { error: 'error', kind: 'text' }, ...rest } }) satisfies EventTable<Odd>;
    const good = { odd: { redact: { error: 'error', kind: 'public' }, ...rest } } satisfies EventTable<Odd>;
    expect(good.odd.audit).toBe('skip');
  });

  test.for(Object.keys(samples) as Types[])('redacts %s field by field, and keeps its names and numbers', (type) => {
    const [event, redacted] = samples[type];
    expect(redactedEvent(event, redactor)).toEqual(redacted);
    expect(Object.keys(redactedEvent(event, redactor))).toEqual(Object.keys(event));
  });

  test('passes on nothing but numbers of an event that it does not know', () => {
    const unknown = { type: 'order.placed', item: SECRET, count: 2, isPaid: true, at: { n: 1 } };
    expect(redactedEvent(unknown as never, redactor)).toEqual({ type: 'order.placed', count: 2 });
    expect(redactedEvent({ type: 'toString', text: SECRET } as never, redactor)).toEqual({ type: 'toString' });
  });

  test('passes on no field that has no row, unless it is a number or a flag', () => {
    const event = { ...samples['phase.started'][0], note: SECRET, size: 1, isBare: true };
    expect(redactedEvent(event, redactor)).toEqual({
      type: 'phase.started',
      index: 0,
      name: 'a',
      size: 1,
      isBare: true,
    });
  });

  test('names the process in kept events about starts, leaving and tool calls only', () => {
    const [started] = samples['tool.started'];
    expect(typesWhere((type) => hasOrigin(samples[type][0]))).toEqual(['run.started', 'run.resumed', 'run.left']);
    expect(hasOrigin({ ...started, effect: 'once' })).toBe(true);
    expect(hasOrigin({ type: 'tool.done', ...call, output: { type: 'text', value: '' }, ms: 1 })).toBe(true);
  });

  test('says what a journal keeps: what the record holds, so no read call’s start and no late result', () => {
    const [started] = samples['tool.started'];
    const [done] = samples['tool.done'];
    const { isLate: _, ...timely } = done;
    expect([started, { ...started, effect: 'idempotent' as const }].map((event) => keepOf(event))).toEqual([
      'passing',
      'kept',
    ]);
    expect([done, timely].map((event) => keepOf(event))).toEqual(['passing', 'with-step']);
    expect(keepOf({ type: 'order.placed' } as never)).toBe('none');
  });
});
