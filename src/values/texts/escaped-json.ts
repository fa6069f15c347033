/** Escapes control characters in JSON; parsed, it is the same value. */
export function escaped(json: string): string {
  return json
    .replace(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (character) => character.split('').map(escapeOf).join(''))
    .replace(/##(?=\[|vso\[|teamcity\[)/g, '\\u0023#');
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
