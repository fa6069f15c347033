import type { SharedPlace } from '../fan-out-wire.ts';

/** The most places that one answer is searched for, and that a view shows. */
const MAX_NAMED = 1_000;
const MAX_SHARED = 50;
const MAX_PLACE_CHARS = 300;

interface Answered {
  readonly modelId: string;
  readonly text: string;
}

/**
 * Returns the places in files that several answers name, as `path:line`: two models that point at one line have found the same
 * thing. Those that most answers name come first.
 * @example sharedPlaces([{ modelId: 'a', text: 'See src/x.ts:7.' }, { modelId: 'b', text: '`src/x.ts:7` leaks' }])
 */
export function sharedPlaces(answers: readonly Answered[]): readonly SharedPlace[] {
  const byPlace = new Map<string, string[]>();
  for (const { modelId, text } of answers) {
    for (const place of placesIn(text)) byPlace.set(place, [...(byPlace.get(place) ?? []), modelId]);
  }
  return [...byPlace]
    .filter(([, modelIds]) => modelIds.length > 1)
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, MAX_SHARED)
    .map(([place, modelIds]) => ({ place, modelIds }));
}

/** The places that a text names, each once. It is cut into words first: that takes time in proportion to its length. */
function placesIn(text: string): ReadonlySet<string> {
  const places = new Set<string>();
  for (const word of text.split(/[\s`'"()[\]{}<>,;|*]/)) {
    const place = word.length > MAX_PLACE_CHARS ? undefined : placeOf(word);
    if (place !== undefined) places.add(place);
    if (places.size >= MAX_NAMED) break;
  }
  return places;
}

/** Reads `path:line`, also with what follows: a column, the end of a range, the point of a sentence. */
function placeOf(word: string): string | undefined {
  const [path = '', line = ''] = word.split(':');
  const number = Number.parseInt(line, 10);
  const hasName = path.includes('.') && !path.endsWith('.') && !path.startsWith('//');
  return hasName && /^\d/.test(line) && number > 0 && number < 10_000_000
    ? `${path.replace(/^\.\//, '')}:${number}`
    : undefined;
}
