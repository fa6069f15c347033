import { writeFileSync } from 'node:fs';
import { eventLog, fleet, lease, whoTalks } from './processes.ts';
import { runChart } from './run-chart.ts';
import { svgOf } from './svg.ts';
import { toolCall } from './tool-call.ts';
import { waitLife } from './wait-life.ts';

/** Each picture that `npm run docs` makes, by the name of its file in docs/pictures. */
export const pictures = {
  'run-chart': runChart,
  'tool-call': toolCall,
  'wait-life': waitLife,
  'who-talks': whoTalks,
  lease,
  fleet,
  'event-log': eventLog,
} as const;

/** Writes the pictures of `npm run docs`. */
export function writePictures(root: string): void {
  for (const [name, make] of Object.entries(pictures))
    writeFileSync(`${root}/docs/pictures/${name}.svg`, svgOf(make()));
}
