import fc from 'fast-check';
import type { RunEvent, RunEventBody } from '../../../src/run/events/body.ts';
import type { ToolOutput } from '../../../src/values/message.ts';
import {
  approval,
  begun,
  type Content,
  call,
  done,
  ended,
  opened,
  pieces,
  snapshot,
  started,
  stepDone,
  story,
} from './run-story.ts';

/** One history of a run, as readers at different times get it. */
export interface RandomStory {
  /** With the pieces of each step, lost attempts, and the recorded message. */
  readonly live: readonly RunEvent[];
  /** From the record. */
  readonly late: readonly RunEvent[];
}

type CallFate = 'runs' | 'fails' | 'approved' | 'denied' | 'reports';
interface StepPlan {
  readonly parts: readonly (
    | readonly ['text' | 'reasoning', string]
    | readonly ['call', CallFate]
    | readonly ['file']
  )[];
  readonly size: number;
  readonly lost: boolean;
  readonly isSeen: boolean;
  readonly isLateDenial: boolean;
}

const fate = fc.constantFrom<CallFate>('runs', 'fails', 'approved', 'denied', 'reports');
const part = fc.oneof(
  fc.tuple(fc.constantFrom('text', 'reasoning'), fc.string({ maxLength: 12, unit: 'grapheme' })),
  fc.tuple(fc.constant('call' as const), fate),
  fc.tuple(fc.constant('file' as const)),
);
const step = fc.record({
  parts: fc.array(part, { maxLength: 5 }),
  size: fc.integer({ min: 1, max: 8 }),
  lost: fc.boolean(),
  isSeen: fc.boolean(),
  isLateDenial: fc.boolean(),
});

export const randomStory: fc.Arbitrary<RandomStory> = fc
  .tuple(fc.array(step as fc.Arbitrary<StepPlan>, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([steps, isCancelled]) => {
    const end = isCancelled ? ended('cancelled', 'CANCELLED') : ended();
    const bodies = (isLive: boolean) => steps.flatMap((plan, i) => stepBodies(plan, i + 1, isLive));
    return { live: story(started, bodies(true), end), late: story(started, bodies(false), end) };
  });

function stepBodies(plan: StepPlan, at: number, isLive: boolean): RunEventBody[] {
  const content = plan.parts.map((one, i): Content[number] => {
    if (one[0] === 'call') return call(`c${at}.${i}`, `tool${i}`, { at: i });
    if (one[0] === 'file')
      return { type: 'file', mediaType: 'a/b', data: { type: 'url', url: new URL(`https://x.org/${i}`) } };
    return { type: one[0], text: one[1] };
  });
  const source = {
    type: 'model.source',
    step: at,
    source: { sourceType: 'url', id: `s${at}`, url: 'https://x.org' },
  } as const;
  const lost = plan.lost
    ? [...pieces(at, content, plan.size).slice(0, 3), { type: 'step.reset', step: at } as const]
    : [];
  // Pieces may be missing at the end; the record has them.
  const seen = plan.isSeen ? pieces(at, content, plan.size) : pieces(at, content, plan.size).slice(0, -1);
  const calls = plan.parts.flatMap((one, i) => (one[0] === 'call' ? callBodies(one[1], { plan, at, i, isLive }) : []));
  return [
    ...(isLive ? [...lost, ...seen] : []),
    ...(content.length > 0 || isLive ? [snapshot(at, ...content), source] : [source]),
    ...calls,
    stepDone(at),
  ];
}

function callBodies(
  how: CallFate,
  { plan, at, i, isLive }: { plan: StepPlan; at: number; i: number; isLive: boolean },
): RunEventBody[] {
  const [id, name] = [`c${at}.${i}`, `tool${i}`];
  const end = (output: ToolOutput) => done(at, id, name, output);
  const wait = approval(`w${at}.${i}`, id, name, at);
  const answered = (decision: 'approve' | 'deny'): RunEventBody => ({
    ...{ type: 'wait.answered', waitId: wait.id, kind: 'approval', how: decision, callId: id },
  });
  const ran = [begun(at, id, name), end({ type: 'json', value: { i } })];
  const denied = [begun(at, id, name), end({ type: 'execution-denied', reason: 'no' })];
  switch (how) {
    case 'runs':
      return ran;
    case 'fails':
      return [begun(at, id, name), end({ type: 'error-text', value: 'broken' })];
    case 'reports':
      return [...ran.slice(0, 1), ...(isLive ? [progress(id, name)] : []), ...ran.slice(1)];
    case 'approved':
      return [opened(wait), ...waits, answered('approve'), woken, ...ran];
    case 'denied':
      return plan.isLateDenial
        ? [opened(wait), ...waits, ...denied, answered('deny'), woken]
        : [opened(wait), ...waits, answered('deny'), woken, ...denied];
  }
}

const waits: readonly RunEventBody[] = [{ type: 'run.waiting', waits: 1 }];
const woken: RunEventBody = { type: 'run.woken' };
const progress = (callId: string, name: string): RunEventBody => ({
  type: 'tool.progress',
  callId,
  name,
  progress: 50,
});
