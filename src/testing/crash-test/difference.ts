import type { RunCheckpoint } from '../../record/checkpoint.ts';

/**
 * Where what was found in a store is not what was saved, in words; undefined = it is the same. The count of attempts is
 * left out: where a claim counts them, it is ahead of the record.
 */
export function firstDifference(found: RunCheckpoint | null, saved: RunCheckpoint | null): string | undefined {
  if (found === saved) return undefined;
  if (!found || !saved) return found ? 'there is a record, and there should be none' : 'there is no record';
  return differenceAt(plain({ ...found, attempts: 0 }), plain({ ...saved, attempts: 0 }), '');
}

/** As JSON has it: a property that is undefined is none. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function differenceAt(found: unknown, saved: unknown, path: string): string | undefined {
  if (Object.is(found, saved)) return undefined;
  if (!isContainer(found) || !isContainer(saved) || Array.isArray(found) !== Array.isArray(saved)) {
    return `${path || 'it'} is ${shown(found)} and was ${shown(saved)}`;
  }
  for (const key of new Set([...Object.keys(saved), ...Object.keys(found)])) {
    const difference = differenceAt(found[key], saved[key], path ? `${path}.${key}` : key);
    if (difference) return difference;
  }
  return undefined;
}

function isContainer(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent';
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
