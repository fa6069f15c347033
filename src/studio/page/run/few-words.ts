import type { JsonValue } from '../../wire.ts';

const WORDS = 120;

/** A text on one line. */
export function fewWords(text: string): string {
  const line = text
    .slice(0, WORDS * 2)
    .replaceAll(/\s+/g, ' ')
    .trim();
  return line.length > WORDS || text.length > WORDS * 2 ? `${line.slice(0, WORDS).toWellFormed()}…` : line;
}

/** An input in a few words: its only text, or its JSON. */
export function fewWordsOf(input: JsonValue | undefined): string {
  if (typeof input === 'string') return fewWords(input);
  if (typeof input !== 'object' || input === null) return input === null || input === undefined ? '' : String(input);
  const values = Object.values(input);
  const texts = values.filter((value) => typeof value === 'string');
  if (texts.length > 0) return fewWords(texts.map((text) => text.slice(0, WORDS)).join(' · '));
  return values.length === 0 ? '' : fewWords(shallow(input));
}

/** The outer levels in JSON: a deep or large value is not walked. */
function shallow(value: JsonValue, depth = 0): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, WORDS));
  if (typeof value !== 'object' || value === null) return String(value);
  if (depth > 2) return Array.isArray(value) ? '[…]' : '{…}';
  if (Array.isArray(value)) {
    const items = value.slice(0, 8).map((item) => shallow(item, depth + 1));
    return `[${items.join(', ')}]`;
  }
  const fields = Object.entries(value).slice(0, 8);
  return `{ ${fields.map(([key, each]) => `${key}: ${shallow(each as JsonValue, depth + 1)}`).join(', ')} }`;
}
