import type { Agent, Executor } from '../index.ts';
import { jsonSchemaValidator } from '../tool/json-schema.ts';
import type { JsonObject } from '../values/json.ts';
import type { Action, AuthorizeDetails, Grant } from './authorize.ts';
import { RequestError } from './problem.ts';
import type { OwnRun } from './run-access.ts';
import type { Web } from './web.ts';

/** What a route works with, besides the request. */
export interface Served {
  readonly executor: Executor;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly web: Web;
  /** What becomes of a run that waits for a person if another message comes. */
  readonly onWaiting: 'interrupt' | 'queue';
}

/** A request on its way through a route. */
export interface Call {
  readonly request: Request;
  readonly url: URL;
  readonly served: Served;
  /** The ids of the path, decoded. */
  readonly params: { readonly [name: string]: string };
  /** The parameters of the query that the route knows. */
  readonly query: Query;
  /** The checked body; `{}` for a route without one. */
  readonly body: JsonObject;
  /** Asks the host about one thing that the request does. @throws {RequestError} UNAUTHORIZED */
  ask(details: AuthorizeDetails): Promise<Grant>;
}

/** A request whose one action is granted; `run` is the run of its path, which the caller may see. */
export interface GrantedCall extends Call {
  readonly grant: Grant;
  /** What was asked: an open stream asks it again. */
  readonly details: AuthorizeDetails;
}

/** A request about a run that the caller may see. */
export interface RunCall extends GrantedCall {
  readonly run: OwnRun;
}

/** A parameter of the query. */
interface QueryField {
  readonly description: string;
  readonly schema: JsonObject;
  /** It may come more than once. */
  readonly isList?: true;
}

/** One kind of answer. */
interface AnswerSpec {
  readonly description: string;
  readonly schema?: JsonObject;
  /** Default `application/json`. */
  readonly type?: 'application/json' | 'text/event-stream';
}

interface RouteFacts {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `/runs/:runId/cancel`. The names of parameters are those of AuthorizeDetails where they mean the same. */
  readonly path: string;
  readonly summary: string;
  readonly query?: { readonly [name: string]: QueryField };
  /** JSON Schema of the body; a POST without one takes no fields. */
  readonly body?: JsonObject;
  /** Headers that mean something to this route. */
  readonly headers?: { readonly [name: string]: string };
  readonly answers: { readonly [status: number]: AnswerSpec };
  /** Codes of errors that this route may answer with, besides those of every route. */
  readonly problems?: readonly string[];
}

/**
 * One row of the table of routes. Before a body is read, the host is asked with the ids of the path. The dispatch, the action for `authorize`, the checks of bodies and the description come
 * from it.
 */
export type Route = RouteFacts &
  (
    | {
        readonly action: Action;
        /** The path names a run: another caller's is 404. */
        readonly of: 'run';
        handle(call: RunCall): Promise<Response>;
      }
    | {
        readonly action: Action;
        readonly of?: undefined;
        /** What the body adds to the question: with it, the host is asked again. */
        detailsOf?(body: JsonObject): Partial<AuthorizeDetails>;
        handle(call: GrantedCall): Promise<Response>;
      }
    | {
        /** The route asks once for each thing that it does. The first one is asked before the body is read, too. */
        readonly actions: readonly [Action, ...Action[]];
        readonly of?: undefined;
        handle(call: Call): Promise<Response>;
      }
  );

/** A route that fits a path, with the ids in it. */
export interface Match {
  readonly route: Route;
  readonly params: { readonly [name: string]: string };
}

/**
 * Finds the route of a request.
 * @param path below the base path, as the URL has it: each part is decoded once
 * @throws {RequestError} NOT_FOUND, METHOD_NOT_ALLOWED
 */
export function matchRoute(routes: readonly Route[], method: string, path: string): Match {
  const parts = path.split('/').map(decoded);
  const allowed: string[] = [];
  for (const route of routes) {
    const params = paramsOf(route.path, parts);
    if (!params) continue;
    if (route.method === method) return { route, params };
    allowed.push(route.method);
  }
  if (allowed.length === 0) throw new RequestError('NOT_FOUND');
  throw new RequestError('METHOD_NOT_ALLOWED', '', { allow: allowed.join(', ') });
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function paramsOf(pattern: string, parts: readonly (string | undefined)[]): Match['params'] | undefined {
  const wanted = pattern.split('/');
  if (wanted.length !== parts.length) return undefined;
  const params: [string, string][] = [];
  for (const [i, name] of wanted.entries()) {
    const part = parts[i];
    if (!name.startsWith(':')) {
      if (part !== name) return undefined;
    } else {
      if (part === undefined || part === '') return undefined;
      params.push([name.slice(1), part]);
    }
  }
  return Object.fromEntries(params);
}

/** The longest part of a problem that a client reads. */
const MAX_PLACE = 200;

const KEY_HEADER = 'idempotency-key';

const validators = new Map<JsonObject, ReturnType<typeof jsonSchemaValidator>>();

/**
 * Checks a body against a schema of the table. The message names the place, and never the value.
 * @throws {RequestError} BAD_REQUEST
 */
export async function checkBody(schema: JsonObject, body: JsonObject, { headers = {} }: Route): Promise<void> {
  const validate = validators.get(schema) ?? jsonSchemaValidator(schema);
  validators.set(schema, validate);
  const [issue] = await validate(body);
  if (!issue) return;
  const place = ['body', ...issue.path].join('.').slice(0, MAX_PLACE);
  const isNaming = place === 'body.runId' && KEY_HEADER in headers;
  const hint = isNaming ? `; the header ${KEY_HEADER} makes a repeated request find its run` : '';
  throw new RequestError('BAD_REQUEST', `${place} is not valid: ${issue.message.slice(0, MAX_PLACE)}${hint}`);
}

/** The parameters of a query, each with its values. */
export type Query = { readonly [name: string]: readonly string[] };

/** Reads the query of a request. @throws {RequestError} BAD_REQUEST for a parameter that is unknown, or comes too often */
export function queryOf({ searchParams }: URL, { query: known = {} }: Route): Query {
  const given = new Map<string, string[]>();
  for (const [name, value] of searchParams) {
    const field = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!field) {
      const names = Object.keys(known).join(', ') || 'none';
      throw new RequestError('BAD_REQUEST', `the query has an unknown parameter; known: ${names}`);
    }
    const values = given.get(name) ?? [];
    if (values.length > 0 && !field.isList)
      throw new RequestError('BAD_REQUEST', `the query has ${name} more than once`);
    given.set(name, [...values, value]);
  }
  return Object.fromEntries(given);
}
