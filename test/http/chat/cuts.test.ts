import type { UIMessage } from 'ai';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RunChunks } from '../../../src/http/chat/chunks.ts';
import { AskedQuestions } from '../../../src/http/chat/frame-id.ts';
import { type PagePosition, viewFrom } from '../../../src/http/chat/page-position.ts';
import type { StepChunk } from '../../../src/http/chat/ui-chunk.ts';
import type { RunEvent } from '../../../src/run/events/body.ts';
import { seed, torture } from '../../crash/random.ts';
import { chunksOf, messageOf, read } from './page.ts';
import { randomStory } from './random-story.ts';
import {
  approval,
  begun,
  call,
  done,
  ended,
  opened,
  question,
  snapshot,
  started,
  stepDone,
  story,
  text,
} from './run-story.ts';

const STORIES = torture > 1 ? 1_000 : 40;

function placed(events: readonly RunEvent[]): StepChunk[] {
  const chunks = new RunChunks('r');
  return events.flatMap((event) => [...chunks.map(event)]);
}

/** Where a page is that has these chunks. */
function positionAfter(chunks: readonly StepChunk[]): Extract<PagePosition, { kind: 'cut' }> {
  const asked = new AskedQuestions();
  for (const chunk of chunks) asked.see(chunk);
  return { kind: 'cut', step: chunks.at(-1)?.step ?? 0, asked: asked.ids };
}

/** What a page with this message shows after a person’s click. @param asked only these questions */
function approved(message: UIMessage | undefined, isApproved = true, asked?: readonly string[]): UIMessage {
  const given = structuredClone(message) as UIMessage;
  for (const part of given.parts) {
    if (!('state' in part) || part.state !== 'approval-requested' || !('approval' in part) || !part.approval) continue;
    if (asked && !asked.includes(part.approval.id)) continue;
    Object.assign(part, { state: 'approval-responded', approval: { ...part.approval, approved: isApproved } });
  }
  return given;
}

describe('A page that lost its connection', () => {
  test(`has the message of an uncut one after any cut, in ${STORIES} random runs (seed ${seed}) (web 31, 35)`, async () => {
    const property = fc.asyncProperty(randomStory, fc.nat(), fc.boolean(), async ({ live, late }, at, isLive) => {
      const uncut = await messageOf(live);
      expect(await messageOf(late)).toEqual(uncut);
      const chunks = placed(live);
      const before = chunks.slice(0, 1 + (at % (chunks.length - 1)));
      const rest = chunksOf(isLive ? live : late, positionAfter(before));
      expect(rest[0]?.type).not.toBe('start');
      const { message } = await read([...before.map(({ chunk }) => chunk), ...rest]);
      expect(message).toEqual(uncut);
    });
    await fc.assert(property, { numRuns: STORIES, seed });
  });

  test(`keeps the answers to its open questions, after any events since, in ${STORIES} random runs (seed ${seed}) (web 31, 35)`, async () => {
    const property = fc.asyncProperty(randomStory, fc.nat(), fc.nat(), async ({ live }, at, more) => {
      const questions = live.flatMap(({ type }, i) => (type === 'wait.opened' ? i : []));
      fc.pre(questions.length > 0);
      const asking = 1 + (questions[at % questions.length] ?? 0);
      const position = positionAfter(placed(live.slice(0, asking)));
      const page = approved(await messageOf(live.slice(0, asking)));
      const now = live.slice(0, asking + (more % (live.length - asking)));
      const { message } = await read(chunksOf(now, position), page);
      expect(message).toEqual(approved(await messageOf(now), true, position.asked));
    });
    await fc.assert(property, { numRuns: STORIES, seed });
  });

  test('before the first step gets all steps, and no step back (web 31)', () => {
    const rest = chunksOf(story(started, text(1, 0, 0, 'a'), stepDone(1), ended()), { kind: 'cut', step: 0 });
    expect(rest.map(({ type }) => type)).not.toContain('reset-step');
    expect(rest).toContainEqual({ type: 'text-delta', id: '1.0', delta: 'a' });
  });

  test('in a step that has no part any more loses that step (web 27, 31)', async () => {
    const shown = placed(story(started, text(1, 0, 0, 'a'), stepDone(1), text(2, 0, 0, 'half'))).map(
      ({ chunk }) => chunk,
    );
    const rest = chunksOf(story(started, text(1, 0, 0, 'a'), stepDone(1), ended('cancelled')), {
      kind: 'cut',
      step: 2,
    });
    expect((await read([...shown, ...rest])).message?.parts.slice(1)).toEqual([
      { type: 'step-start' },
      { type: 'text', text: 'a', state: 'done', providerMetadata: undefined },
      { type: 'step-start' },
    ]);
  });
});

describe('A page that shows open questions and lost its connection', () => {
  const asked = story(
    ...[started, snapshot(1, { type: 'text', text: 'Now' }, call('c', 'mail'), call('d', 'mail'), call('e', 'look'))],
    ...[opened(approval('w', 'c', 'mail')), begun(1, 'e', 'look')],
  );
  const later = story(
    ...[started, snapshot(1, { type: 'text', text: 'Now' }, call('c', 'mail'), call('d', 'mail'), call('e', 'look'))],
    ...[opened(approval('w', 'c', 'mail')), begun(1, 'e', 'look'), done(1, 'e', 'look', { type: 'text', value: '3' })],
    ...[opened(approval('v', 'd', 'mail'))],
  );

  test('gets what came meanwhile: an output and another question, and nothing of what it has (web 29, 31)', async () => {
    const chunks = chunksOf(later, positionAfter(placed(asked)));
    expect(JSON.stringify(chunks)).not.toMatch(/reset-step|Now|"approvalId":"w"/);
    const { message } = await read(chunks, approved(await messageOf(asked)));
    expect(message).toEqual(approved(await messageOf(later), true, ['w']));
  });

  test('keeps a person’s output of a call that asks (web 29, 31)', async () => {
    const asking = story(started, snapshot(1, call('q', 'choose')), opened(question('w', 'q', 'choose')));
    const page = structuredClone(await messageOf(asking)) as UIMessage;
    const part = page.parts.find((one) => 'toolCallId' in one);
    Object.assign(part ?? {}, { state: 'output-available', output: 'a' });
    const { message } = await read(chunksOf(asking, positionAfter(placed(asking))), structuredClone(page));
    expect(message).toEqual(page);
  });

  test('gets its step again if a question is not there any more (web 31, 35)', async () => {
    const gone = { kind: 'cut', step: 1, asked: ['x'] } as const;
    const whole = story(later, stepDone(1), text(2, 0, 0, 'After'), stepDone(2), ended());
    const { message } = await read(chunksOf(whole, gone), approved(await messageOf(asked)));
    expect(message).toEqual(await messageOf(whole));
  });

  test('with very many of them gets its step again (web 31)', () => {
    const many = Array.from({ length: 17 }, (_, i) => opened(approval(`w${i}`, `c${i}`, 'mail')));
    const calls = many.map((_, i) => call(`c${i}`, 'mail'));
    expect(positionAfter(placed(story(started, snapshot(1, ...calls), many.slice(1)))).asked).toHaveLength(16);
    expect(positionAfter(placed(story(started, snapshot(1, ...calls), many))).asked).toEqual([]);
  });
});

describe('A page that posted an answer', () => {
  const asked = [
    ...[started, text(1, 0, 0, 'Before'), stepDone(1)],
    ...[snapshot(2, { type: 'text', text: 'Now' }, call('c', 'mail'), call('d', 'mail'))],
    ...[opened(approval('w', 'c', 'mail', 2)), opened(approval('v', 'd', 'mail', 2))],
  ];
  const answer = (waitId: string, callId: string) =>
    ({ type: 'wait.answered', waitId, kind: 'approval', how: 'approve', callId }) as const;
  const rest = [
    ...[answer('w', 'c'), answer('v', 'd'), begun(2, 'c', 'mail'), done(2, 'c', 'mail', { type: 'text', value: '1' })],
    ...[begun(2, 'd', 'mail'), done(2, 'd', 'mail', { type: 'text', value: '2' }), stepDone(2)],
    ...[text(3, 0, 0, 'After'), stepDone(3), ended()],
  ];
  const both = {
    kind: 'answered',
    step: 2,
    calls: new Set(['c', 'd']),
    waits: new Map([
      ['w', 'c'],
      ['v', 'd'],
    ]),
    outputs: new Set<string>(),
  } as const;

  test('continues in the same message: the calls of that step as they stand, and the rest (web 30)', async () => {
    const chunks = chunksOf(story(...asked, ...rest), both);
    expect(chunks[0]).toEqual({ type: 'start', messageId: 'r:m' });
    expect(JSON.stringify(chunks)).not.toMatch(/Before|Now|approval-request/);
    const { message } = await read(chunks, approved(await messageOf(story(...asked))));
    expect(message).toEqual(await messageOf(story(...asked, ...rest)));
  });

  test('that loses its connection before anything new has come continues in its last step (web 30, 31, 35)', async () => {
    const events = story(...asked, ...rest);
    const first = viewFrom(both)(placed(events)).slice(0, 2);
    expect(first.map(({ chunk }) => chunk.type)).toEqual(['start', 'data-pawl-run']);
    const after = chunksOf(events, positionAfter(first));
    const page = approved(await messageOf(story(...asked)));
    const { message } = await read([...first.map(({ chunk }) => chunk), ...after], page);
    expect(message).toEqual(await messageOf(events));
  });

  test('gets the question of a call that is still open (web 30)', async () => {
    const one = { ...both, waits: new Map([['w', 'c']]) };
    const chunks = chunksOf(story(...asked, ...rest.slice(0, 1)), one);
    const requests = chunks.flatMap((chunk) => (chunk.type === 'tool-approval-request' ? chunk.approvalId : []));
    expect(requests).toEqual(['v']);
  });

  test('gets its own question again if the answer was refused (web 29, 30)', () => {
    const refused = { type: 'wait.refused', waitId: 'w', code: 'ANSWER_REFUSED', reason: 'not you' } as const;
    const requests = chunksOf(story(...asked, refused), both).flatMap((chunk) =>
      chunk.type === 'tool-approval-request' ? chunk.approvalId : [],
    );
    expect(requests).toEqual(['w']);
  });

  test('sees the call of an answered question at work again (web 29, 30)', async () => {
    const events = story(started, snapshot(1, call('q', 'choose')), opened(question('w', 'q', 'choose')));
    const page = structuredClone(await messageOf(events)) as UIMessage;
    const part = page.parts.find((one) => 'toolCallId' in one);
    Object.assign(part ?? {}, { state: 'output-available', output: 'a' });
    const position = {
      kind: 'answered',
      step: 1,
      calls: new Set(['q']),
      waits: new Map([['w', 'c']]),
      outputs: new Set(['q']),
    } as const;
    const { message } = await read(chunksOf(events, position), page);
    expect(message).toEqual(page.parts.length ? await messageOf(events) : page);
  });

  test('of a run without such a call gets the end alone (web 25, 30)', () => {
    const unknown = {
      kind: 'answered',
      step: 1,
      calls: new Set(['x']),
      waits: new Map<string, string>(),
      outputs: new Set<string>(),
    } as const;
    const shown = chunksOf(story(...asked, ...rest), unknown).filter(({ type }) => type !== 'data-pawl-run');
    expect(shown.map(({ type }) => type)).toEqual(['start', 'finish']);
  });
});
