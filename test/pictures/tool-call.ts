import { arrow, box, cross, line, type Picture, text } from './svg.ts';

/** What becomes of a call by its effect and by where its process dies. A test asks `recoverOpenStep` the same. */
export const fates = {
  read: { before: 'runs', during: 'runs again', after: 'result is kept' },
  idempotent: { before: 'runs', during: 'runs again, same key', after: 'result is kept' },
  once: { before: 'runs', during: 'not repeated', after: 'result is kept' },
} as const;

const columns = [
  ['before', 172],
  ['during', 292],
  ['after', 414],
] as const;

export function toolCall(): Picture {
  const rows = Object.entries(fates).map(([effect, fate], at) => {
    const y = 222 + at * 48;
    return [
      `<path class="rule" d="M22 ${y - 28}H458"/>`,
      text([22, y], effect, 'code bold'),
      ...columns.map(([when, x]) => {
        const [first = '', more] = fate[when].split(', ');
        const tone = when === 'during' ? (effect === 'once' ? 'bad bold' : 'warn bold') : '';
        return (
          text([x, more === undefined ? y : y - 8], first, `small ${tone}`.trim(), 'middle') +
          (more === undefined ? '' : text([x, y + 9], more, `small ${tone}`, 'middle'))
        );
      }),
    ].join('\n');
  });
  return {
    title: 'One tool call, three places where a process may die, three effects',
    description:
      'A process may die before the intent of a call is stored, while the call runs, or after its result is stored. Before it, every call runs. ' +
      'After it, no call runs again: its result is kept. Between them a read call runs again, an idempotent call runs again with the same key, ' +
      'and a once call does not run again: the model reads that its outcome is unknown.',
    width: 480,
    height: 392,
    style: '.rule{stroke:var(--edge);stroke-width:1.5}',
    body: [
      text([22, 34], 'one tool call', 'bold'),
      arrow([120, 84, 466, 84], 'soft'),
      box([198, 64], [64, 40], ['intent'], 'main'),
      box([322, 64], [64, 40], ['result'], 'good'),
      text([230, 54], 'stored', 'small soft', 'middle'),
      text([354, 54], 'stored', 'small soft', 'middle'),
      text([292, 77], 'it runs', 'small soft', 'middle'),
      text([22, 89], 'time', 'small soft'),
      text([22, 140], 'the process dies', 'small bad bold'),
      ...columns.map(([, x]) => cross([x, 135])),
      ...columns.map(([, x]) => line([x, 96, x, 122], 'bad', true)),
      text([22, 176], 'then the call', 'small soft'),
      ...rows,
      text([22, 354], 'Of a call that is not repeated, the model reads “outcome unknown”.', 'small soft'),
      text([22, 374], 'A read call stores no intent.', 'small soft'),
    ],
  };
}
