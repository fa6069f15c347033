import { askProgressFor } from '../../../src/cli/ask/ask-progress.ts';
import { askReportOf } from '../../../src/cli/ask/ask-report.ts';
import type { ModelView } from '../../../src/cli/ask/board-state.ts';
import { Output } from '../../../src/cli/ui/output.ts';
import { systemClock } from '../../../src/values/clock.ts';
import { viewOf } from './board-views.ts';

/**
 * Plays a session onto the board; each key is a moment of it. `n` the next thing happens, `s` something is said, `f` the next
 * model comes to the front, `e` the end, `x` an exit without one, `h` a signal that nobody else listens to. With `deaf` as its argument it hears no keys: the terminal
 * makes a signal of Ctrl-C then.
 */
const isDeaf = process.argv[2] === 'deaf';
// Before anything is to be seen: what is typed after that must not be written over it.
if (!isDeaf) process.stdin.setRawMode?.(true);
let now = 0;
const output = new Output();
const models = ['sonnet', 'gpt', '模型'];
const clock = { ...systemClock, monotonic: () => now };
const progress = askProgressFor(output, { prompt: process.env.PROMPT ?? 'Why is it slow?', models, clock });
const views = new Map(models.map((id) => [id, viewOf(id, { state: 'waiting' })]));

function change(id: string, view: Partial<ModelView>): void {
  const changed = { ...viewOf(id), ...views.get(id), ...view };
  views.set(id, changed);
  progress.update(changed);
}

const lines = (count: number) => Array.from({ length: count }, (_, index) => `sentence ${index + 1}`).join('\n');

const moments: readonly (() => void)[] = [
  () => {
    for (const id of models) change(id, { state: 'thinking', text: 'Let me see.' });
  },
  () => {
    change('sonnet', {
      state: 'calling-tools',
      activity: 'read_file src/fetch.ts',
      steps: 1,
      inputTokens: 600,
      latencyMs: 1_500,
    });
    change('gpt', { text: `It waits for each file.\n\n${lines(60)}`, outputTokens: 240 });
    change('模型', { text: '它逐个等待文件，👍 而不是同时请求。é'.repeat(6), outputTokens: 40 });
  },
  () => {
    change('sonnet', {
      state: 'answered',
      text: 'Ask for all at once.',
      steps: 2,
      outputTokens: 90,
      costUsd: 0.0031,
      latencyMs: 3_000,
      toolCalls: { read_file: 1 },
      writes: 1,
    });
    change('gpt', { state: 'failed', error: 'the connection was lost', latencyMs: 2_000 });
    change('模型', { state: 'interrupted', latencyMs: 3_000 });
  },
];
let moment = 0;

function end(): void {
  progress.end();
  output.printText(
    askReportOf(
      [...views.values()].map(({ id, state, ...rest }) => ({
        ...rest,
        modelId: id,
        interrupted: state === 'interrupted',
      })),
    ),
  );
  process.exit(0);
}

const keys: Readonly<Record<string, () => void>> = {
  n: () => {
    now += 1_500;
    moments[moment++]?.();
  },
  s: () => output.say(`pawl: warning ${moment}: said while the board is up`),
  f: () => progress.moveFocus(1),
  e: end,
  x: () => process.exit(3),
  h: () => void process.kill(process.pid, 'SIGHUP'),
};

if (isDeaf) {
  keys.n?.();
} else {
  if (!output.isLive) output.say('ready');
  process.stdin.on('data', (typed) => {
    for (const key of typed.toString()) keys[key]?.();
  });
}
