import { kindOf } from './known-options.ts';

/**
 * Checks that a port has the functions that it is called by; absent ports are fine. They may stand on its prototype.
 * @param needed.advice ends the message
 * @throws {TypeError} that names the port and the functions that are missing
 */
export function checkMethods(
  name: string,
  port: unknown,
  { methods, advice = '' }: { readonly methods: readonly string[]; readonly advice?: string },
): void {
  if (port === undefined) return;
  const missing = missingMethods(port, methods);
  if (missing.length === 0) return;
  const plural = methods.length === 1 ? 'function' : 'functions';
  const isRead = (typeof port === 'object' && port !== null) || typeof port === 'function';
  const got = isRead ? `it has no ${missing.join(', ')}` : `it is ${kindOf(port)}`;
  throw new TypeError(`${name} must have the ${plural} ${methods.join(', ')}${advice || `; ${got}`}`);
}

/** Those of the functions that a value lacks. One whose getter throws is there: the call that needs it gets that error. */
export function missingMethods(value: unknown, methods: readonly string[]): readonly string[] {
  return methods.filter((method) => {
    try {
      return typeof (value as Record<string, unknown> | null | undefined)?.[method] !== 'function';
    } catch {
      return false;
    }
  });
}
