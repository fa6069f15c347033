import type { Wait } from '../../src/run/waits/wait.ts';
import { arrow, box, type Picture, text } from './svg.ts';

/** What a wait of each kind waits for. The compiler compares the kinds with those of the code. */
const kinds: Readonly<Record<Wait['kind'], string>> = {
  approval: 'a person approves a call',
  question: 'a person answers',
  event: 'something happens outside',
  timer: 'a time comes',
  child: 'a child run ends',
  retry: 'the model is back',
  limit: 'the turn of a model call',
};

export function waitLife(): Picture {
  const rows = Object.entries(kinds).map(([kind, forWhat], at) => {
    const y = 72 + at * 25;
    return text([40, y], kind, 'code') + text([150, y], forWhat, 'small soft');
  });
  return {
    title: 'The life of a wait',
    description:
      `A run opens a wait of one of seven kinds: ${Object.keys(kinds).join(', ')}. The wait is stored with the run. A second later the run rests: ` +
      'no process, no timer and no claim is held. An answer, a signal or the time ends the wait, once. Then any process continues the run.',
    width: 480,
    height: 494,
    body: [
      text([22, 34], 'A run waits', 'bold'),
      '<rect class="box" x="20" y="48" width="440" height="190" rx="8"/>',
      ...rows,
      arrow([120, 238, 120, 270], 'main'),
      box([20, 272], [200, 56], ['stored', 'with the record'], 'main'),
      arrow([220, 300, 258, 300], 'soft'),
      text([239, 290], '1 s', 'small soft', 'middle'),
      box([260, 272], [200, 56], ['rests', 'no process, no claim'], 'good'),
      arrow([120, 328, 120, 362], 'main'),
      arrow([360, 328, 360, 362], 'soft'),
      box([20, 364], [440, 56], ['ends once', 'by an answer, a signal or a time, in any process'], 'main'),
      arrow([240, 420, 240, 454], 'main'),
      text([240, 474], 'the run continues', 'bold', 'middle'),
    ],
  };
}
