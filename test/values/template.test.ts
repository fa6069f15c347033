import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fillTemplate } from '../../src/values/texts/template.ts';

const values = { Query: 'why?', survey: 'notes', _n1: 'one' };

const filled = (template: string, given: { readonly [name: string]: string } = values) =>
  fillTemplate(template, given, { unknown: 'text' });

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
    ['{{ {{.survey}}', '{{ notes'],
  ])('%j becomes %j', ([template, text]) => expect(filled(template as string)).toBe(text));

  test.for([
    '{{.constructor}}',
    '{{.__proto__}}',
    '{{.hasOwnProperty}}',
    '{{.nothing}}',
    '{{.survey.length}}',
    '{{survey}}',
    '{{.1}}',
    '{{}}',
    '{{#if user}}{{name}}{{/if}}',
    'style={{ color: "red" }}',
    '{{.survey | upper}}',
    '{{.sürvey}}',
    '{{.survey',
    'a {{ b {{ c',
    '{{.survey}',
    '{{.sur{vey}}',
  ])(
    '%s names nothing that is known: it stays as it is, or is empty in the template of a skill (edges 23)',
    (template) => {
      expect(filled(`<${template}>`)).toBe(`<${template}>`);
      const emptied = template.replaceAll(/\{\{[^{}]*\}\}/g, '');
      expect(fillTemplate(template, values, { unknown: 'empty' })).toBe(emptied);
    },
  );

  test.for([
    ['{{{{.survey}}', '{{.survey}}'],
    ['{{{{ and {{.survey}}', '{{ and notes'],
    ['{{{{{{{{', '{{{{'],
    ['{{{{{.survey}}', '{{{.survey}}'],
  ])('%j has an escape, and becomes %j (edges 23)', ([template, text]) =>
    expect(filled(template as string)).toBe(text),
  );

  test('does not fill in the text of a value: braces, names and patterns of a replacement stay as they are', () => {
    const told = { a: '{{.b}} {{.Query}} {{', b: 'secret', Query: "$& $1 $' $$" };
    expect(filled('{{.a}}|{{.Query}}', told)).toBe("{{.b}} {{.Query}} {{|$& $1 $' $$");
  });

  test('knows names that each object inherits when a value is given for them', () => {
    const own = Object.fromEntries([
      ['constructor', 'c'],
      ['__proto__', 'p'],
    ]);
    expect(filled('{{.constructor}} {{.__proto__}}', own)).toBe('c p');
  });

  test('is text between placeholders, and values in their place, for any text in both', () => {
    const text = fc.string({ unit: 'binary' }).map((raw) => raw.replaceAll(/[{}]/g, ''));
    const name = fc.constantFrom('Query', 'survey', '_n1', 'unknown');
    const parts = fc.array(fc.record({ before: text, name }), { maxLength: 6 });
    fc.assert(
      fc.property(parts, text, fc.string({ unit: 'binary' }), (all, end, raw) => {
        const given = { Query: raw, survey: `{{.${raw}}}`, _n1: '{{._n1}}' };
        const template = all.map(({ before, name: each }) => `${before}{{.${each}}}`).join('') + end;
        const expected = all.map(({ before, name: each }) => before + (given[each as 'Query'] ?? '')).join('') + end;
        expect(fillTemplate(template, given, { unknown: 'empty' })).toBe(expected);
      }),
    );
  });

  test('of a hundred thousand open braces is read in no time', () => {
    expect(filled(`{${'{{'.repeat(100_000)}`)).toHaveLength(100_001);
  });
});
