import { describe, expect, test } from 'vitest';
import { ProgressRedaction } from '../../src/record/redact-progress.ts';
import type { FieldTable } from '../../src/run/field-rows.ts';
import { rowsOf } from '../../src/run/field-rows.ts';
import { type RunFields, runFields } from '../../src/run/fields.ts';
import { beginProgress } from '../../src/run/progress.ts';
import { Redactor } from '../../src/values/redact.ts';
import { metaOf } from '../fixtures/states.ts';

/** Each test holds a line that the compiler must refuse: where it accepts the line, the type check of the tests fails. */
describe('the table of run fields does not compile', () => {
  type WithAdded = RunFields & { readonly added?: string };
  const { spend, attempts, ...others } = runFields;

  test('without a row for a field', () => {
    // @ts-expect-error the row of `added` is missing
    const table = runFields satisfies FieldTable<WithAdded>;
    expect(table).not.toHaveProperty('added');
  });

  test('with a row that no field belongs to', () => {
    // @ts-expect-error there is no field `added`
    const table = { ...runFields, added: spend } satisfies FieldTable<RunFields>;
    expect(table).toHaveProperty('added');
  });

  test('with a row that does not say how its field is redacted', () => {
    const { redact: _, ...silent } = spend;
    // @ts-expect-error there is no default for `redact`
    const table = { ...others, attempts, spend: silent } satisfies FieldTable<RunFields>;
    expect(table.spend).not.toHaveProperty('redact');
  });

  test('with a row that gives a field that every run has no empty value', () => {
    const { empty: _, ...undefaulted } = attempts;
    // @ts-expect-error `attempts` is in every run
    const table = { ...others, spend, attempts: undefaulted } satisfies FieldTable<RunFields>;
    expect(table.attempts).not.toHaveProperty('empty');
  });

  test('with a row that does not say how a field of the request is read', () => {
    const { labels, ...unread } = runFields;
    const { given, ...silent } = labels;
    // @ts-expect-error a host gives `labels`
    const table = { ...unread, labels: silent } satisfies FieldTable<RunFields>;
    expect(table.labels).not.toHaveProperty('given');
    expect(given.isAsked).toBe(true);
  });

  test('with a row that puts its field into another part than its declaration', () => {
    // @ts-expect-error `spend` is declared as a field of the head
    const table = { ...others, attempts, spend: { ...spend, part: 'start' } } satisfies FieldTable<RunFields>;
    expect(table.spend.part).toBe('start');
  });
});

describe('the table of run fields', () => {
  test('has each row in one part, and each part in the order of the table', () => {
    const inParts = (['identity', 'head', 'start', 'messages'] as const).flatMap((part) => rowsOf(part));
    expect(inParts.map(({ key }) => key)).toEqual(Object.keys(runFields));
  });

  test('requires no more fields of a record than its first version did, so that each later row is optional (checkpoint 6)', () => {
    const rows = rowsOf('identity', 'start', 'head', 'messages');
    const required = rows.flatMap(({ key, spec }) => (spec.required ? [key] : []));
    expect(required).toEqual(['meta', 'iteration', 'completedPhases', 'messages']);
  });

  test('takes its own empty values for valid', () => {
    for (const { key, spec } of rowsOf('identity', 'start', 'head', 'messages')) {
      if (spec.empty !== undefined) expect(spec.isValid(spec.empty), key).toBe(true);
    }
  });

  test('refuses null and a number with a fraction below zero in every field', () => {
    for (const { key, spec } of rowsOf('identity', 'start', 'head', 'messages')) {
      expect([null, -0.5].filter(spec.isValid), key).toEqual([]);
    }
  });
});

describe('redaction by the table of run fields', () => {
  const by = () => new ProgressRedaction(new Redactor(() => '***', 'record'));

  test('redacts every text of a field that is not in the table', () => {
    const progress = { ...beginProgress(metaOf(), { version: '1', hash: 'h' }), later: { text: 'secret', count: 1 } };
    expect(by().progress(progress)).toMatchObject({ later: { text: '***', count: 1 } });
  });

  test('keeps ids, attribution and counts, and redacts the prompt, inputs and messages', () => {
    const begun = beginProgress(
      metaOf(),
      { version: '1', hash: 'h' },
      { inputs: { a: 'secret' }, labels: { team: 'blue' } },
    );
    const redacted = by().progress(begun);
    expect(redacted.meta).toEqual({ ...metaOf(), prompt: '***' });
    expect(redacted.inputs.value).toEqual({ a: '***' });
    expect(redacted.transcript.slice()).toMatchObject([{ content: [{ text: '***' }] }]);
    expect([redacted.labels, redacted.definition]).toEqual([{ team: 'blue' }, begun.definition]);
  });
});
