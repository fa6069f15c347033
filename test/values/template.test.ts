import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fillTemplate } from '../../src/values/texts/template.ts';

const values = { Query: 'why?', survey: 'notes', _n1: 'one' };

/** What a template becomes, and what is told about it. */
function filled(template: string, given: { readonly [name: string]: string } = values): [string, string[]] {
  const warnings: string[] = [];
  return [fillTemplate(template, given, (problem) => warnings.push(problem)), warnings];
}

describe('a template (pipeline 2)', () => {
  test.for([
    ['From {{.survey}} answer {{.Query}}', 'From notes answer why?'],
    ['{{.survey}}{{.survey}}', 'notesnotes'],
    ['{{ .survey }}, {{\t._n1\n}}', 'notes, one'],
    ['', ''],
    ['no braces', 'no braces'],
    ['{ .survey } }} {.Query}', '{ .survey } }} {.Query}'],
    ['{{{.survey}}}', '{notes}'],
    ['{{{.survey}}{', '{notes{'],
  ])('%j becomes %j, with no warning', ([template, text]) => {
    expect(filled(template as string)).toEqual([text, []]);
  });

  test.for([
    '{{.constructor}}',
    '{{.__proto__}}',
    '{{.toString}}',
    '{{.hasOwnProperty}}',
    '{{.nothing}}',
    '{{.survey.length}}',
    '{{.survey["length"]}}',
    '{{survey}}',
    '{{.1}}',
    '{{}}',
    '{{ . }}',
    '{{.survey | upper}}',
    '{{if .survey}}',
    '{{.sürvey}}',
  ])('%s is no name: it is empty, with one warning', (template) => {
    const [text, warnings] = filled(`<${template}>`);
    expect(text).toBe('<>');
    expect(warnings).toEqual([expect.stringContaining('is not a known name')]);
  });

  test('says once of each unknown name that it is unknown, however often it stands there', () => {
    const [text, warnings] = filled('{{.x}} {{.y}} {{ .x }} {{.survey}} {{.x}}');
    expect(text).toBe('   notes ');
    expect(warnings).toEqual([expect.stringContaining('{{.x}}'), expect.stringContaining('{{.y}}')]);
  });

  test.for([
    ['{{.survey', '{{.survey'],
    ['a {{ b {{ c', 'a {{ b {{ c'],
    ['{{ {{.survey}}', '{{ notes'],
    ['{{.survey}', '{{.survey}'],
    ['{{.sur{vey}}', '{{.sur{vey}}'],
  ])('%j has braces that are not closed: they stay as they are, with one warning', ([template, text]) => {
    const [result, warnings] = filled(template as string);
    expect(result).toBe(text);
    expect(warnings).toEqual(['{{ without }} is taken as text']);
  });

  test('does not fill in what stands in a value: braces, names and patterns of a replacement stay as they are', () => {
    const told = { a: '{{.b}} {{.Query}} {{', b: 'secret', Query: "$& $1 $' $$" };
    expect(filled('{{.a}}|{{.Query}}', told)).toEqual(["{{.b}} {{.Query}} {{|$& $1 $' $$", []]);
  });

  test('knows names that objects have by nature when somebody gave them a value', () => {
    const own = Object.fromEntries([
      ['constructor', 'c'],
      ['__proto__', 'p'],
    ]);
    expect(filled('{{.constructor}} {{.__proto__}}', own)).toEqual(['c p', []]);
  });

  test('needs nobody to listen', () => expect(fillTemplate('{{.nothing}}{{', {})).toBe('{{'));

  test('is text between placeholders, and values in their place, whatever they say', () => {
    const text = fc.string({ unit: 'binary' }).map((raw) => raw.replaceAll(/[{}]/g, ''));
    const name = fc.constantFrom('Query', 'survey', '_n1', 'unknown');
    const parts = fc.array(fc.record({ before: text, name }), { maxLength: 6 });
    fc.assert(
      fc.property(parts, text, fc.string({ unit: 'binary' }), (all, end, raw) => {
        const given = { Query: raw, survey: `{{.${raw}}}`, _n1: '{{._n1}}' };
        const template = all.map(({ before, name: each }) => `${before}{{.${each}}}`).join('') + end;
        const expected = all.map(({ before, name: each }) => before + (given[each as 'Query'] ?? '')).join('') + end;
        expect(fillTemplate(template, given)).toBe(expected);
      }),
    );
  });

  test('of a hundred thousand open braces is read in no time', () => {
    const [text, warnings] = filled('{{'.repeat(100_000));
    expect(text).toHaveLength(200_000);
    expect(warnings).toHaveLength(1);
  });
});
