import { isObject } from '../values/json.ts';

/** The beginning of a long text, with how much is missing. */
export function clipText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} more characters)`;
}

/**
 * A value as JSON of bounded length. Long texts in it are clipped; when it is still too long its beginning stands there as
 * text, in `{ clipped }`. What cannot be written as JSON is `null`.
 */
export function clipJson(value: unknown, most: number): string {
  try {
    const text = JSON.stringify(withoutLongTexts(value, most)) ?? 'null';
    if (text.length <= 2 * most) return text;
    const clip = (_: string, each: unknown) => (typeof each === 'string' ? clipText(each, most) : each);
    const clipped = JSON.stringify(value, clip);
    return clipped.length <= 2 * most ? clipped : JSON.stringify({ clipped: clipText(clipped, most) });
  } catch {
    return 'null';
  }
}

/** Long texts are mostly those of a tool's output: clipped before they are encoded, they cost nothing. */
function withoutLongTexts(value: unknown, most: number): unknown {
  if (typeof value === 'string') return clipText(value, most);
  if (!isObject(value) || typeof value.value !== 'string' || value.value.length <= most) return value;
  return { ...value, value: clipText(value.value, most) };
}
