import type { JsonObject } from '../values/json.ts';
import { jsonAnswer, knownProblems } from './problem.ts';
import type { GrantedCall, Route } from './route.ts';
import { answerSchemaOf, text } from './schemas.ts';

/** Codes that each route may answer with. */
const everywhere = ['UNAUTHORIZED', 'FOREIGN_ORIGIN', 'WRONG_HOST', 'INTERNAL', 'STORE_UNAVAILABLE'];
const withBody = ['BAD_REQUEST', 'BODY_TIMEOUT', 'BODY_TOO_LARGE', 'WRONG_CONTENT_TYPE'];

/** Makes the route that describes the others. */
export function descriptionRoute(routes: readonly Route[]): Route {
  return {
    method: 'GET',
    path: '/openapi.json',
    summary: 'Describes the routes: OpenAPI 3.1.',
    action: 'read',
    answers: { 200: { description: 'The description.', schema: { type: 'object' } } },
    handle: async ({ served }: GrantedCall) => jsonAnswer(describe(routes, served.web.basePath)),
  };
}

/** Describes routes as an OpenAPI 3.1 document. @param basePath where they are, '' for the root */
function describe(routes: readonly Route[], basePath: string): JsonObject {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Pawl', version: '1', description: 'Runs of agents: start, follow, answer, steer, cancel.' },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    paths,
    components: { schemas: { Problem: problemSchema } },
  };
}

const problemSchema = answerSchemaOf(
  { type: text, title: text, status: { type: 'integer' }, code: text, detail: text },
  ['type', 'title', 'status', 'code'],
);

function operationOf(route: Route): JsonObject {
  const { method, path, summary, body, answers } = route;
  const asked = 'actions' in route ? route.actions : [route.action];
  return {
    summary,
    description: `Action for \`authorize\`: ${asked.map((action) => `\`${action}\``).join(', ')}.`,
    operationId: operationIdOf(method, path),
    parameters: parametersOf(route),
    ...(method === 'POST'
      ? { requestBody: { required: true, content: { 'application/json': { schema: body ?? { type: 'object' } } } } }
      : {}),
    responses: { ...problemsOf(route), ...Object.fromEntries(Object.entries(answers).map(responseOf)) },
  };
}

/** `post_runs_runId_cancel`. */
function operationIdOf(method: string, path: string): string {
  return `${method.toLowerCase()}${path.replaceAll(':', '').replaceAll('.', '_').replaceAll('/', '_')}`;
}

function parametersOf({ path, query = {}, headers = {} }: Route): JsonObject[] {
  const ids = path
    .split('/')
    .filter((part) => part.startsWith(':'))
    .map((part) => ({ name: part.slice(1), in: 'path', required: true, schema: { type: 'string', minLength: 1 } }));
  const asked = Object.entries(query).map(([name, { description, schema, isList }]) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: isList ? { type: 'array', items: schema } : schema,
  }));
  const read = Object.entries(headers).map(([name, description]) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: text,
  }));
  return [...ids, ...asked, ...read];
}

type Answer = Route['answers'][number];

function responseOf([status, { description, schema, type = 'application/json' }]: [string, Answer]) {
  const content = schema
    ? { [type]: { schema } }
    : type === 'text/event-stream'
      ? { [type]: { schema: text } }
      : undefined;
  return [status, { description, ...(content ? { content } : {}) }] as const;
}

/** The errors of a route, one entry for each status. */
function problemsOf(route: Route): JsonObject {
  const hasRun = 'of' in route && route.of === 'run';
  const codes = new Set([
    ...everywhere,
    ...(route.method === 'POST' ? withBody : []),
    ...(route.query ? ['BAD_REQUEST'] : []),
    ...(hasRun ? ['NOT_FOUND'] : []),
    ...(route.problems ?? []),
  ]);
  const known = knownProblems().filter(([code]) => codes.has(code));
  const statuses = [...new Set(known.map(([, status]) => status))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => {
      const of = known.filter((each) => each[1] === status).map(([code, , title]) => `\`${code}\`: ${title}.`);
      const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
      return [status, { description: of.join(' '), content }];
    }),
  );
}
