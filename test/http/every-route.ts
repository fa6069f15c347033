import type { Route } from '../../src/http/route.ts';
import { routes } from '../../src/http/routes.ts';
import type { JsonObject } from '../../src/values/json.ts';

/** A request that a route takes, with ids of one's choice. */
export interface SampleRequest {
  readonly name: string;
  readonly route: Route;
  readonly path: string;
  readonly body: unknown;
}

/** One request for each row of the table: a new route is covered by the tests that use this. */
export function everyRoute(ids: { readonly [name: string]: string }): readonly SampleRequest[] {
  return routes.map((route) => ({
    name: `${route.method} ${route.path}`,
    route,
    path: route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(ids[name] ?? 'some')),
    body: route.method === 'POST' ? sampleOf(route.body ?? { type: 'object' }) : undefined,
  }));
}

/** A value that fits a schema of the table: its required fields, and nothing else. */
export function sampleOf(schema: JsonObject): unknown {
  if (Array.isArray(schema.examples)) return schema.examples[0];
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (Array.isArray(schema.anyOf)) return sampleOf(schema.anyOf[0] as JsonObject);
  if (schema.type === 'object') {
    const properties = (schema.properties ?? {}) as Record<string, JsonObject>;
    const required = (schema.required ?? []) as string[];
    return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]));
  }
  if (schema.type === 'array') return Number(schema.minItems ?? 0) > 0 ? [sampleOf(schema.items as JsonObject)] : [];
  if (schema.type === 'boolean') return true;
  if (schema.type === 'integer' || schema.type === 'number') return 1;
  return 'worker';
}
