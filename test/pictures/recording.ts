import { escaped, svgOf, text } from './svg.ts';

/** A line that the demo printed, and when, ms after its start. */
export interface PrintedLine {
  readonly at: number;
  readonly words: string;
}

/** A longer pause is played as one of this length, ms. */
const LONGEST_PAUSE_MS = 1_500;
const COLUMNS = 64;
const ROW = 21;
const TOP = 74;

/** docs/pictures/demo.svg: what `pawl demo` printed, line by line as it came. */
export function demoPicture(lines: readonly PrintedLine[]): string {
  const delays = playedAt(lines);
  let row = 0;
  const body = lines.map(({ at, words }, index) => {
    const top = TOP + row * ROW;
    const parts = wrapped(words);
    row += parts.length;
    const spans = parts.map((part, below) => {
      const indent = /^ */.exec(part)?.[0].length ?? 0;
      return `<tspan x="${74 + indent * 7.8}" y="${top + below * ROW}">${escaped(part.trimStart())}</tspan>`;
    });
    return [
      `<g class="row" data-at="${at}" style="animation-delay:${delays[index]}ms">`,
      text([62, top], `${(at / 1_000).toFixed(1)} s`, 'code soft', 'end'),
      `<text class="code${toneOf(words)}" data-words="${escaped(words)}">${spans.join('')}</text></g>`,
    ].join('');
  });
  const bottom = TOP + row * ROW;
  const seconds = ((lines.at(-1)?.at ?? 0) / 1_000).toFixed(1);
  return svgOf({
    title: 'A recording of pawl demo',
    description: `What the command pawl demo printed in ${seconds} seconds: ${lines.map(({ words }) => words.trim()).join('. ')}`,
    width: 600,
    height: bottom + 40,
    shown: 760,
    body: [
      text([74, 40], '$ pawl demo', 'code bold'),
      ...body,
      text(
        [74, bottom + 16],
        `A real run, recorded by a script. Pauses of more than ${LONGEST_PAUSE_MS / 1_000} s are cut to that.`,
        'small soft',
      ),
    ],
    style:
      '@keyframes come{from{opacity:0}to{opacity:1}}.row{animation:come 1ms both}' +
      '@media (prefers-reduced-motion:reduce){.row{animation:none}}',
  });
}

/** The lines that a recording shows. */
export function linesIn(svg: string): PrintedLine[] {
  const found = svg.matchAll(/data-at="(\d+)".*? data-words="([^"]*)"/g);
  return [...found].map(([, at, words = '']) => ({ at: Number(at), words: unescaped(words) }));
}

/** A line without what each run has for itself: its process ids, its counts, the names of its files, what a kill has met. */
export function withoutChance(words: string): string {
  return words
    .replace(/SIGKILL during .*(add_note|publish_report).*;/, 'SIGKILL during $1;')
    .replace(/(Report: |--store ).*?([^/]+)$/, '$1$2')
    .replace(/npx (?:--no-install )?pawl/, 'pawl')
    .replaceAll(/\d+/g, 'n');
}

function playedAt(lines: readonly PrintedLine[]): number[] {
  let [played, before] = [400, 0];
  return lines.map(({ at }) => {
    played += Math.min(at - before, LONGEST_PAUSE_MS);
    before = at;
    return played;
  });
}

function toneOf(words: string): string {
  if (words.includes('SIGKILL')) return ' bad bold';
  if (words.includes('waits for a person')) return ' warn bold';
  return /^(?:The run ended ok|Recorded calls)/.test(words) ? ' good bold' : '';
}

/** A line as a terminal of 64 columns would break it, at its spaces. */
function wrapped(words: string): string[] {
  const rows: string[] = [];
  let rest = words;
  while (rest.length > COLUMNS) {
    const at = rest.lastIndexOf(' ', COLUMNS);
    if (rest.slice(0, at).trim() === '') break;
    rows.push(rest.slice(0, at));
    rest = `    ${rest.slice(at + 1)}`;
  }
  return [...rows, rest];
}

function unescaped(words: string): string {
  return words.replaceAll('&quot;', '"').replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}
