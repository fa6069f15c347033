import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunEvent, RunEventBody } from '../../../src/run/events/body.ts';
import type { JournalEntry } from '../../../src/run/journal/entry.ts';
import { type JournalEvent, JournalReader, journalStart, positionIn } from '../../../src/run/journal/reader.ts';

const numbered = (body: RunEventBody, seq: number): RunEvent => ({ ...body, runId: 'r', seq, at: 0 });
const passing = (place: number, body: RunEventBody, attempt = 5): JournalEntry => ({
  place,
  keep: 'passing',
  event: numbered(body, place),
  attempt,
});
const started = (place: number, step = 1, attempt = 5) => passing(place, { type: 'step.started', step }, attempt);
const said = (place: number, text: string, at: { block?: number; offset?: number; attempt?: number } = {}) => {
  const { block = 0, offset = 0, attempt = 5 } = at;
  return passing(place, { type: 'model.delta', step: 1, kind: 'text', block, offset, text }, attempt);
};
const snapshot = (place: number, texts: readonly string[], more: Partial<JournalEntry> = {}): JournalEntry => ({
  place,
  keep: 'kept',
  attempt: 5,
  event: numbered({ type: 'step.snapshot', step: 1, content: texts.map((text) => ({ type: 'text', text })) }, place),
  ...more,
});
const shown = (events: readonly JournalEvent[]) =>
  events.map((event) => {
    if (event.type === 'model.delta') return `${event.block}.${event.offset} ${event.text}`;
    if (event.type === 'step.snapshot') return event.content.map((part) => (part.type === 'text' ? part.text : '?'));
    return event.type;
  });
const readAll = (reader: JournalReader, entries: readonly JournalEntry[]) =>
  entries.flatMap((each) => reader.read(each));

describe('a reader of a journal', () => {
  test('from the beginning gets a recorded step as a snapshot (web 4)', () => {
    expect(shown(readAll(new JournalReader(journalStart), [snapshot(9, ['Hello', 'you'])]))).toEqual([
      ['Hello', 'you'],
    ]);
  });

  test('that read all pieces of a step gets nothing more for its record (web 4)', () => {
    const entries = [started(1), said(2, 'Hello'), said(3, 'you', { block: 1 }), snapshot(9, ['Hello', 'you'])];
    expect(shown(readAll(new JournalReader(journalStart), entries))).toEqual(['step.started', '0.0 Hello', '1.0 you']);
  });

  test('gets the whole message of a step that has more than text, also after its pieces (web 4)', () => {
    const call = { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { at: 1 } } as const;
    const content = [{ type: 'text', text: 'Hello' } as const, call];
    const recorded = {
      ...snapshot(9, []),
      event: numbered({ type: 'step.snapshot', step: 1, content }, 9),
    };
    const reader = new JournalReader(journalStart);
    const events = readAll(reader, [started(1), said(2, 'Hel'), recorded]);
    expect(shown(events)).toEqual(['step.started', '0.0 Hel', '0.3 lo', ['Hello', '?']]);
    const cut = new JournalReader(positionIn(events[2]?.cursor));
    expect(shown(cut.read(recorded))).toEqual([['Hello', '?']]);
  });

  test('keeps its place in the text while the arguments of two calls arrive by turns (web 6)', () => {
    const input = (place: number, block: number, offset: number) =>
      passing(place, { type: 'tool.input', step: 1, block, offset, callId: `c${block}`, name: 'look', text: 'ab' });
    const entries = [started(1), said(2, 'One'), input(3, 1, 0), input(4, 3, 0), input(5, 1, 2), input(6, 3, 2)];
    const reader = new JournalReader(journalStart);
    const before = readAll(reader, entries);
    const next = new JournalReader(positionIn(before.at(-1)?.cursor));
    const texts = ['One', '', 'Two', '', 'Three'];
    expect(shown(next.read(snapshot(9, texts)))).toEqual(['4.0 Three']);
  });

  test('that was cut in a text gets the rest of it from the record (web 6)', () => {
    const first = readAll(new JournalReader(journalStart), [started(1), said(2, 'Hel')]);
    const next = new JournalReader(positionIn(first.at(-1)?.cursor));
    expect(shown(readAll(next, [snapshot(9, ['Hello', 'you'])]))).toEqual(['0.3 lo', '1.0 you']);
  });

  test('gets the rest again that was cut between two of its events (web 6)', () => {
    const first = new JournalReader(journalStart);
    readAll(first, [started(1), said(2, 'Hel')]);
    const [rest] = first.read(snapshot(9, ['Hello', 'you']));
    const next = new JournalReader(positionIn(rest?.cursor));
    expect(shown(next.read(snapshot(9, ['Hello', 'you'])))).toEqual(['1.0 you']);
  });

  test('that has pieces of another attempt gets a reset, then the step as it is recorded (web 5, 6)', () => {
    const first = readAll(new JournalReader(journalStart), [started(1), said(2, 'Hel')]);
    const next = new JournalReader(positionIn(first.at(-1)?.cursor));
    const [reset, whole] = next.read(snapshot(9, ['Bye'], { attempt: 7 }));
    expect(shown([reset, whole] as JournalEvent[])).toEqual(['step.reset', ['Bye']]);
    const cut = new JournalReader(positionIn(reset?.cursor));
    expect(shown(cut.read(snapshot(9, ['Bye'], { attempt: 7 })))).toEqual([['Bye']]);
  });

  test('continues with the pieces of a second attempt after its reset (web 5)', () => {
    const entries = [
      started(1),
      said(2, 'Hel'),
      passing(3, { type: 'step.reset', step: 1 }, 8),
      said(4, 'Bye', { attempt: 8 }),
      snapshot(9, ['Bye now'], { attempt: 8 }),
    ];
    expect(shown(readAll(new JournalReader(journalStart), entries))).toEqual([
      'step.started',
      '0.0 Hel',
      'step.reset',
      '0.0 Bye',
      '0.3  now',
    ]);
  });

  test('gets only the new part of a piece that it has in part (web 6)', () => {
    const first = readAll(new JournalReader(journalStart), [started(1), said(2, 'Hel')]);
    const next = new JournalReader({ ...positionIn(first.at(-1)?.cursor), place: 1 });
    expect(shown(readAll(next, [said(4, 'Hello'), said(5, 'you', { block: 1 })]))).toEqual(['0.3 lo', '1.0 you']);
  });

  test('that missed pieces gets none after the gap: the record brings the rest of the text (web 4, 6)', () => {
    const entries = [started(1), said(2, 'He'), said(4, 'o', { offset: 4 }), said(5, 'you', { block: 1, offset: 2 })];
    const reader = new JournalReader(journalStart);
    expect(shown(readAll(reader, entries))).toEqual(['step.started', '0.0 He']);
    expect(shown(reader.read(snapshot(9, ['Hello', 'to you'])))).toEqual(['0.2 llo', '1.0 to you']);
  });

  test('that begins in the middle of a text gets it from its beginning, with the record (web 4, 6)', () => {
    const reader = new JournalReader(journalStart);
    expect(readAll(reader, [said(4, 'lo', { offset: 3 })])).toEqual([]);
    expect(shown(reader.read(snapshot(9, ['Hello'])))).toEqual(['0.0 Hello']);
  });

  test('whose pieces were redacted alone gets a reset and the whole step, unless it has all of them (web 4, 6)', () => {
    const end = { block: 0, offset: 5 };
    const reader = () => {
      const one = new JournalReader(journalStart);
      readAll(one, [started(1), said(2, 'Hel')]);
      return one;
    };
    expect(shown(reader().read(snapshot(9, ['He***'], { end })))).toEqual(['step.reset', ['He***']]);
    const whole = reader();
    whole.read(said(3, 'lo', { offset: 3 }));
    expect(whole.read(snapshot(9, ['He***'], { end }))).toEqual([]);
  });

  test('that has the last event of a run is over, on any host (web 23)', () => {
    const ended: JournalEntry = {
      place: 4,
      keep: 'kept',
      event: numbered({ type: 'run.ended', status: 'ok', output: 'x' }, 4),
    };
    const [event] = new JournalReader(journalStart).read(ended);
    expect(new JournalReader(positionIn(event?.cursor)).isOver).toBe(true);
  });

  test.each([
    '',
    '1',
    '1-2-3-4',
    '1-2-3-4-5-6',
    '1-2-3-4-x',
    '99999999999999999-1-1-1-1',
    '1-2-3-4-5-END',
    null,
    7,
    {},
  ])('refuses %j as a cursor (web 6)', (cursor) => {
    expect(() => positionIn(cursor)).toThrow(TypeError);
  });

  test('has the same text however often it is cut (web 6, 35)', () => {
    const texts = fc.array(fc.string({ maxLength: 12, unit: 'grapheme' }), { maxLength: 4 });
    fc.assert(
      fc.property(texts, fc.array(fc.nat(30), { maxLength: 6 }), fc.nat(40), (blocks, sizes, recordedAfter) => {
        // The pieces that are announced before the step is recorded.
        const pieces: JournalEntry[] = [started(1)];
        let place = 1;
        blocks.forEach((text, block) => {
          for (let offset = 0, i = 0; offset < text.length; i++) {
            const piece = text.slice(offset, offset + 1 + ((sizes[i % (sizes.length || 1)] ?? 0) % 5));
            pieces.push(said(++place, piece, { block, offset }));
            offset += piece.length;
          }
        });
        const announced = pieces.slice(0, recordedAfter);
        const entries = [...announced, snapshot(99, blocks)];
        // Each event is the last one of its connection.
        let read = '';
        let at = journalStart;
        for (;;) {
          const reader = new JournalReader(at);
          const [event] = entries.flatMap((each) => reader.read(each));
          if (!event) break;
          at = positionIn(event.cursor);
          if (event.type === 'model.delta') read += event.text;
          else if (event.type === 'step.snapshot') read = blocks.join('');
        }
        expect(read).toBe(blocks.join(''));
      }),
    );
  });
});
