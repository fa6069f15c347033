import { readProperty } from '../values/error-data.ts';
import { noUsage, type Usage } from '../values/usage.ts';
import type { CallUse, Spend } from './port.ts';

/**
 * Checks an amount that is charged to a budget: tokens, US dollars or seconds.
 * @throws {TypeError} if it is not a finite number >= 0
 */
export function checkAmount(name: string, amount: unknown): number {
  if (typeof amount === 'number' && amount >= 0 && Number.isFinite(amount)) return amount;
  const given = typeof amount === 'number' ? String(amount) : typeof amount;
  throw new TypeError(`${name} must be a finite number from 0, not ${given}`);
}

/**
 * Checks the numbers that a call used, and returns a copy of them.
 * @throws {TypeError} if one of its numbers is negative or not finite
 */
export function checkedUse(used: CallUse): CallUse {
  const given = readProperty(used, 'usage');
  const read = (field: string) => checkAmount(`usage.${field}`, readProperty(given, field));
  const usage = Object.fromEntries(Object.keys(noUsage).map((field) => [field, read(field)])) as unknown as Usage;
  return { usage, seconds: checkAmount('seconds', readProperty(used, 'seconds')) };
}

/**
 * Checks the numbers that a run has spent, and returns a copy of them.
 * @throws {TypeError} if one of its numbers is negative or not finite
 */
export function checkedSpend(spend: Spend): Spend {
  const read = (field: string) => checkAmount(`spend.${field}`, readProperty(spend, field));
  return { tokens: read('tokens'), usd: read('usd'), seconds: read('seconds') };
}

/** Checks that a field of a budget's call is a string. @throws {TypeError} if it is not a string */
export function checkText(name: string, text: unknown): string {
  if (typeof text === 'string') return text;
  throw new TypeError(`${name} must be a string, not ${typeof text}`);
}
