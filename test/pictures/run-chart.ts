import { boxLeft, boxWidth, layoutOf, nodeHeight } from '../../src/studio/page/chart/layout.ts';
import { roundPath } from '../../src/studio/page/chart/round.ts';
import { type Picture, text } from './svg.ts';

/** The statechart of a run without phases, as Studio places it. A test of Studio holds the layout against `runMachine`. */
export const layout = layoutOf(0, 0);

const scale = 1.05;

export function runChart(): Picture {
  const bottom = Math.round(14 + layout.height * scale + 26);
  const edges = layout.edges.toSorted((a, b) => Number(a.isMain) - Number(b.isMain));
  const body = [
    `<g transform="translate(${(480 - layout.width * scale) / 2} 14) scale(${scale})">`,
    ...layout.boxes.map(
      ({ y, height }) => `<rect class="loop" x="${boxLeft}" y="${y}" width="${boxWidth}" height="${height}" rx="8"/>`,
    ),
    ...layout.boxes.map(({ id, y }) => text([boxLeft + 10, y + 16], id, 'soft name')),
    ...edges.map(
      ({ points, isMain }) =>
        `<path class="line ${isMain ? 'main' : 'faint'}" d="${roundPath(points)}" marker-end="url(#tip-${isMain ? 'main' : 'soft'})"/>`,
    ),
    ...layout.nodes.map(({ label, x, y, width, isFinal }) =>
      [
        `<rect class="box${isFinal ? ' end' : ''}" x="${x - width / 2}" y="${y - nodeHeight / 2}" width="${width}" height="${nodeHeight}" rx="${isFinal ? 12 : 5}"/>`,
        text([x, y + 4], label, 'name', 'middle'),
      ].join('\n'),
    ),
    '</g>',
    text([22, bottom], 'Blue: what most runs do. ↺: a restart continues here.', 'small soft'),
    text([22, bottom + 18], 'Round: the end of the loop, or of the run.', 'small soft'),
  ];
  return {
    title: 'The statechart of a run',
    description:
      'A run resolves its record, then its loop enters a step, calls the model, lands the reply and calls tools. It waits if it must, and enters ' +
      'the next step. An answer ends the loop, and the run completes, fails or is left for a later process.',
    width: 480,
    height: bottom + 36,
    shown: 720,
    body,
    style:
      'text.name{font-size:11.5px}.loop{fill:none;stroke:var(--edge)}.line{stroke-width:1.2}.faint{opacity:.55}.box{stroke-width:1}',
  };
}
