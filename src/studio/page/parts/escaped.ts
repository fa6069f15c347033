// Characters that would hide or reorder what a reader sees: controls, marks of direction, spaces without a width, halves of
// characters.
const hiding = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u{e0000}-\u{e0fff}]/gu;
const kept = '\t\n';

/** Returns a text with its hidden characters as escapes: `\u202e`. Tabs and line ends stay. */
export function escapedHtml(text: string): string {
  return text.replace(hiding, (char) =>
    kept.includes(char) ? char : `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}
