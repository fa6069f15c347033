import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { harmless } from '../../../src/cli/ui/control-characters.ts';
import { cutToWidth, displayWidth, drawable, drawableLine, fittingPart } from '../../../src/cli/ui/terminal-text.ts';
import { anyCodeUnits } from './board-texts.ts';

describe('the width of a text on a terminal', () => {
  test.for([
    ['plain', 5],
    ['', 0],
    ['漢字', 4],
    ['ｆｕｌｌ', 8],
    ['ﾊﾝｶｸ', 4],
    ['한국어', 6],
    ['\u1112\u1161\u11ab', 2],
    ['e\u0301', 1],
    ['नमस्ते', 4],
    ['👍', 2],
    ['✓■·…│', 5],
    ['𠀀', 2],
    ['日本, 中国。', 12],
  ] as const)('%s takes %i columns', ([text, width]) => expect(displayWidth(text)).toBe(width));
});

describe('text as it is drawn', () => {
  test.for([
    ['\u001b[31mred\u001b[0m', 'red', 'loses its colours'],
    ['a\u001b]0;title\u0007b', 'ab', 'cannot name the window'],
    ['a\tb', 'a  b', 'has spaces for tabs'],
    ['a\r\nb\rc\u0085d\u2028e', 'a\nb\nc\nd\ne', 'has one kind of line break'],
    ['\u0000\u0008\u007f\u0084x', 'x', 'has no control characters'],
    ['abc\u202edef\u2066', 'abcdef', 'is not turned around'],
    ['👩‍👩‍👧‍👦', '👩', 'has one picture for a sequence of them'],
    ['👍🏽 ❤️ 1️⃣', '👍 ❤ 1', 'has pictures without their variations'],
    ['🇫🇷🇯🇵', 'FRJP', 'has letters for flags'],
    ['\ud83d', '\ufffd', 'has no halves of characters'],
    ['e\u0301', 'e\u0301', 'keeps its accents'],
  ] as const)('%j becomes %j: it %s', ([text, drawn]) => expect(drawable(text)).toBe(drawn));

  test('is one line where one is asked for', () => expect(drawableLine(' a\n\n b\tc ')).toBe('a b c'));

  test('holds nothing that steers a terminal, for any text', () => {
    fc.assert(
      fc.property(anyCodeUnits, (text) => {
        const drawn = drawable(text);
        expect(harmless(drawn)).toBe(drawn);
        expect(drawn).not.toMatch(/[^\P{Cc}\n]|[\p{Cf}\p{Cs}]/u);
      }),
    );
  });

  test('is cut to its columns, whole characters with their accents, and says so', () => {
    expect(cutToWidth('abcdef', 6)).toBe('abcdef');
    expect(cutToWidth('abcdef', 5)).toBe('abcd…');
    expect(cutToWidth('漢字漢字', 6)).toBe('漢字…');
    expect(cutToWidth('漢字漢字', 5)).toBe('漢字…');
    expect(cutToWidth('漢字漢字', 4)).toBe('漢…');
    expect(cutToWidth('abc', 0)).toBe('');
    expect(fittingPart('xe\u0301e\u0301', 2)).toBe('xe\u0301');
  });
});
