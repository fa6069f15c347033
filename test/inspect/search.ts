/** All values under a key, wherever in a parsed frame. */
export function found(value: unknown, key: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => (name === key ? [inner] : found(inner, key)));
}

/**
 * Every string that can be reached from a value by its own properties, hidden ones and symbols too, through Maps and Sets,
 * at any depth: more than any serialiser finds.
 */
export function reachable(value: unknown): Set<string> {
  const texts = new Set<string>();
  const seen = new Set<unknown>();
  const open: unknown[] = [value];
  while (open.length > 0) {
    const current = open.pop();
    if (typeof current === 'string') texts.add(current);
    if ((typeof current !== 'object' && typeof current !== 'function') || current === null || seen.has(current))
      continue;
    seen.add(current);
    if (current instanceof Map) open.push(...current.keys(), ...current.values());
    if (current instanceof Set) open.push(...current);
    for (const key of Reflect.ownKeys(current)) {
      texts.add(String(key));
      open.push(read(current, key));
    }
  }
  return texts;
}

function read(value: object, key: PropertyKey): unknown {
  try {
    return (value as Record<PropertyKey, unknown>)[key];
  } catch {
    return undefined;
  }
}
