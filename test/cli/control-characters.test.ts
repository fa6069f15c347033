import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { harmless, oneLine, visible } from '../../src/cli/ui/control-characters.ts';
import { drawable, drawableLine } from '../../src/cli/ui/terminal-text.ts';
import { loggerOf } from '../../src/cli/ui/warnings.ts';
import { LogLines } from '../../src/log/log.ts';
import { escaped } from '../../src/values/texts/escaped-json.ts';
import { anyCodeUnits } from './ask/board-texts.ts';

const LONG = 300_000;

describe('text of others that is printed', () => {
  test.for([
    ['fills no clipboard (OSC 52)', 'a\u001b]52;c;cm0gLXJm\u0007b', 'ab'],
    ['fills no clipboard by the one-character introducer', 'a\u009d52;c;cm0gLXJm\u009cb', 'ab'],
    ['names no window', 'a\u001b]0;root\u001b\\b', 'ab'],
    ['has no colours', '\u001b[1;31mred\u001b[m', 'red'],
    ['moves no cursor', 'a\u001b[2J\u001b[10;1Hb\u009b3Ac', 'abc'],
    ['sends no device or private string', 'a\u001bP1$r\u001b\\b\u001b_x\u001b\\c\u001b^y\u0007d', 'abcd'],
    ['sets no character set and resets nothing', 'a\u001b(0b\u001bcc', 'abc'],
    ['keeps what follows a sequence that has no end', 'a\u001b]52;c;text', 'a52;c;text'],
    ['keeps what follows a control sequence that is cut off', 'a\u001b[31', 'a'],
    ['has no other control characters', 'a\u0000\u0007\u0008\u007f\u0084b', 'ab'],
    ['has one kind of line break', 'a\r\nb\rc\u0085d\u2028e\u2029f\u000bg\u000ch', 'a\nb\nc\nd\ne\nf\ng\nh'],
    ['does not turn around what follows', 'a\u202eb\u2066c\u2069\u200fd\u061c', 'abcd'],
    ['hides no text in tags and fillers', 'a\u{e0041}\u{e0042}\ufeff\u2060b', 'ab'],
    ['keeps the joiners of emoji and of scripts', '👩‍🚀 می‌خواهم', '👩‍🚀 می‌خواهم'],
    ['keeps tabs', 'a\tb', 'a\tb'],
    ['has no halves of characters', 'a\ud83d', 'a\ufffd'],
  ] as const)('%s: %j becomes %j', ([_, text, shown]) => expect(harmless(text)).toBe(shown));

  test.for([
    ['::error file=a::b', ': :error file=a::b'],
    ['a\n  ::add-mask::x\nb', 'a\n  : :add-mask::x\nb'],
    ['a\r::stop-commands::x', 'a\n: :stop-commands::x'],
    ['\u200b\u001b[0m::set-env name=x::y', ': :set-env name=x::y'],
    ['\u00a0\u2003::debug::x', '\u00a0\u2003: :debug::x'],
    ['see ##[error]x and ##vso[task.complete]y', 'see ## [error]x and ## vso[task.complete]y'],
    ["##teamcity[testFailed name='x']", "## teamcity[testFailed name='x']"],
    ['## A heading with std::vector\n- item', '## A heading with std::vector\n- item'],
  ] as const)('gives no command to a machine of continuous integration: %j becomes %j', ([text, shown]) => {
    expect(harmless(text)).toBe(shown);
  });

  test.for([
    ['a\nb', 'a b'],
    ['a\n::error::b', 'a ::error::b'],
    ['\n::error::b', ': :error::b'],
    ['a\u001b]0;x\u0007\r\n\u202eb \u2028 c', 'a b c'],
  ] as const)('is one line where it is part of a line: %j becomes %j', ([text, shown]) =>
    expect(oneLine(text)).toBe(shown),
  );

  test('steers nothing, for any text, and is not changed by a second filter', () => {
    const texts = fc.oneof(
      anyCodeUnits,
      fc
        .array(fc.constantFrom('\u001b', '[', ']', '::', '##[', '\n', '\r', ' ', 'x', '\u0007', '\u009b', '\u202e'))
        .map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const shown = harmless(text);
        expect(shown).not.toMatch(/[^\P{Cc}\n\t]|[^\P{Cf}\u200c\u200d]|[\u2028\u2029]/u);
        expect(shown).not.toMatch(/^[^\S\n]*::|##\[|##vso\[/m);
        expect(harmless(shown)).toBe(shown);
        expect(oneLine(text)).not.toMatch(/[\p{Cc}\p{Cf}\n]|^\s*::/u);
        expect(visible(text)).not.toMatch(/[^\P{Cc}\n\t]|\p{Cf}/u);
      }),
    );
  });

  test('is the same value as JSON, in which nothing steers a terminal or a log', () => {
    const hostile = '\u001b]52;c;x\u0007\u009b3A\u202e\u{e0041}\u2028##vso[task.complete]\n::error::x';
    fc.assert(
      fc.property(fc.oneof(anyCodeUnits, fc.constant(hostile)), (text) => {
        for (const indent of [undefined, 2]) {
          const json = escaped(JSON.stringify({ text, list: [text] }, null, indent));
          expect(JSON.parse(json)).toEqual({ text, list: [text] });
          expect(json).not.toMatch(/[^\P{Cc}\n]|\p{Cf}|[\u2028\u2029]|^\s*::|##(?:\[|vso)/mu);
        }
      }),
    );
  });

  test.for([
    ['a control character', 'a\u001b[31mb', 'a<U+001B>[31mb'],
    ['what turns the direction', 'a\u202eb', 'a<U+202E>b'],
    ['what is not seen', 'a\u200bb\u{e0041}', 'a<U+200B>b<U+E0041>'],
    ['another line break of Windows', 'a\r\nb', 'a^M\nb'],
    ['a line break that is none', 'a\rb\u2028c', 'a<U+000D>b<U+2028>c'],
  ] as const)('is written out in a diff, where a person decides by it: %s', ([_, text, shown]) => {
    expect(visible(text)).toBe(shown);
  });

  test.for([
    ['strings without an end', '\u001b]'],
    ['strings with an end each', '\u001b]x\u0007'],
    ['introducers', '\u001b'],
    ['control sequences that are cut off', '\u001b[1;'],
    ['parameters', '1;'],
    ['spaces', ' '],
    ['line breaks', '\n'],
    ['line breaks and spaces', '\n '],
    ['colons', ':'],
    ['hashes', '#'],
    ['control characters', '\u0000'],
  ] as const)(`takes time in proportion to its length: ${LONG} characters of %s are filtered`, ([_, part]) => {
    const text = part.repeat(LONG / part.length);
    const prefixes = ['', '\u001b[', '\u001b]'];
    for (const prefix of prefixes) {
      for (const filter of [harmless, oneLine, visible, drawable, drawableLine]) {
        expect(filter(`${prefix}${text}xyz`).endsWith('z')).toBe(true);
      }
    }
    expect(JSON.parse(escaped(JSON.stringify(text)))).toBe(text);
  });
});

test('a warning names its schedule, run, call and counts, each bounded and without control characters (operations 10)', () => {
  const said: string[] = [];
  const lines = new LogLines(loggerOf({ say: (line) => void said.push(line) }));
  lines.warn('schedule.missed', { schedule: 'nightly\nat 2', ticks: 3 });
  lines.warn('call.unknown', { runId: `r${'x'.repeat(500)}`, agentId: 'a', callId: '1.1', tool: 'pay' });
  lines.warn('workflow.restless', { runId: 'r', count: 1000, most: 5000 });
  lines.warn('due.read.failed', { agentId: 'a', error: new Error('away') });
  expect(said).toEqual([
    `pawl: warning: schedule: ticks were missed (schedule nightly at 2, 3 ticks)`,
    `pawl: warning: run: a call of tool pay may or may not have taken effect; it is not made again (run r${'x'.repeat(199)}, call 1.1)`,
    'pawl: warning: run: the workflow has made 1000 transitions without a rest; at 5000 it fails (run r)',
    'pawl: warning: executor: the due runs cannot be read (agent a): away',
  ]);
});
