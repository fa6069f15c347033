// The style of the pictures in docs/pictures: small SVGs that a README may show. They have no script, no font and no address of
// others; they are light or dark as the reader's system is, and have a text for those who do not see them.
import { roundPath } from '../../src/studio/page/chart/round.ts';

export interface Picture {
  readonly title: string;
  /** What it shows, in sentences. */
  readonly description: string;
  /** Of its drawing. Phones show 360 of them in a line. */
  readonly width: number;
  readonly height: number;
  /** How wide a page shows it, in pixels; absent = 1.35 times `width`. */
  readonly shown?: number;
  readonly body: readonly string[];
  /** Rules besides those of all pictures. */
  readonly style?: string;
}

/** `main`: what the picture is about; `good`, `bad`: what was saved, what died; `soft`: what is beside it. */
export type Tone = 'main' | 'good' | 'bad' | 'warn' | 'soft';

type Point = readonly [x: number, y: number];

const tones: readonly Tone[] = ['main', 'good', 'bad', 'warn', 'soft'];
/** Each colour by day and by night. On its ground a text has a contrast of 4.5 or more. */
export const colours = {
  ground: ['#ffffff', '#0d1117'],
  edge: ['#d1d9e0', '#3d444d'],
  fill: ['#f6f8fa', '#161c24'],
  ink: ['#1f2328', '#e6edf3'],
  soft: ['#59636e', '#9198a1'],
  main: ['#0a5bc4', '#6cb2ff'],
  good: ['#1a7037', '#4cc764'],
  bad: ['#c21e2b', '#ff7b72'],
  warn: ['#8a5a00', '#e0a83a'],
} as const;

const rules = [
  'text{font:15px system-ui,-apple-system,"Segoe UI",sans-serif;fill:var(--ink)}',
  '.small{font-size:13px}.code{font-family:ui-monospace,"SFMono-Regular",Menlo,Consolas,monospace;font-size:13px}.bold{font-weight:600}',
  '.ground{fill:var(--ground);stroke:var(--edge)}.box{fill:var(--fill);stroke:var(--edge);stroke-width:1.5}',
  '.line{fill:none;stroke-width:1.7;stroke:var(--soft)}.dash{stroke-dasharray:5 4}',
  ...tones.map(
    (tone) => `text.${tone},.tip.${tone}{fill:var(--${tone})}.line.${tone},.box.${tone}{stroke:var(--${tone})}`,
  ),
].join('\n');

/** The file of a picture. */
export function svgOf({
  title,
  description,
  width,
  height,
  shown = Math.round(width * 1.35),
  body,
  style = '',
}: Picture): string {
  const night = (index: 0 | 1) =>
    Object.entries(colours)
      .map(([name, both]) => `--${name}:${both[index]}`)
      .join(';');
  const tips = tones.map(
    (tone) =>
      `<marker id="tip-${tone}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">` +
      `<path class="tip ${tone}" d="M0 .8 8 4 0 7.2z"/></marker>`,
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${shown}" height="${Math.round((height * shown) / width)}" role="img" aria-labelledby="t d">`,
    `<title id="t">${escaped(title)}</title>`,
    `<desc id="d">${escaped(description)}</desc>`,
    `<style>\n:root{${night(0)}}\n@media (prefers-color-scheme:dark){:root{${night(1)}}}\n${rules}${style && `\n${style}`}\n</style>`,
    `<defs>${tips.filter((tip) => body.some((part) => part.includes(`#${/id="([^"]+)"/.exec(tip)?.[1]})`))).join('')}</defs>`,
    `<rect class="ground" x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="12"/>`,
    ...body,
    '</svg>',
  ].join('\n')}\n`;
}

/** Makes a text safe for XML, whatever it holds. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** A line of text. `look` has classes: a tone, `small`, `code`, `bold`. */
export function text([x, y]: Point, words: string, look = '', anchor: 'start' | 'middle' | 'end' = 'start'): string {
  const where = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
  return `<text x="${x}" y="${y}"${look && ` class="${look}"`}${where}>${escaped(words)}</text>`;
}

/** A rectangle with lines of text in its middle: the first one is its name. */
export function box([x, y]: Point, [width, height]: Point, lines: readonly string[], tone?: Tone): string {
  const top = y + height / 2 + 5 - (lines.length - 1) * 9;
  const words = lines.map((line, at) =>
    text(
      [x + width / 2, top + at * 18],
      line.replace(/^`(.*)`$/, '$1'),
      `${at === 0 ? 'bold' : 'small'}${/^`/.test(line) ? ' code' : ''}`,
      'middle',
    ),
  );
  return [
    `<rect class="box${tone ? ` ${tone}` : ''}" x="${x}" y="${y}" width="${width}" height="${height}" rx="8"/>`,
    ...words,
  ].join('\n');
}

/** A line with round corners that ends in a tip; `isDashed` for what may be, or is over. */
export function arrow(points: readonly number[], tone: Tone = 'soft', isDashed = false): string {
  return `<path class="line ${tone}${isDashed ? ' dash' : ''}" d="${roundPath(points)}" marker-end="url(#tip-${tone})"/>`;
}

/** A line without a tip. */
export function line(points: readonly number[], tone: Tone = 'soft', isDashed = false): string {
  return `<path class="line ${tone}${isDashed ? ' dash' : ''}" d="${roundPath(points)}"/>`;
}

/** Where a process dies. */
export function cross([x, y]: Point, size = 7): string {
  return `<path class="line bad" stroke-width="3" d="M${x - size} ${y - size} ${x + size} ${y + size}M${x + size} ${y - size} ${x - size} ${y + size}"/>`;
}
