import { httpHandler } from '../../src/http/index.ts';
import { createExecutor, memoryStore } from '../../src/index.ts';

interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly description?: string;
}
interface Operation {
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Schema } } };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
}

/** An operation with its place. */
export interface ShownRoute extends Operation {
  readonly name: string;
}

/** The operations of the OpenAPI document that `httpHandler` serves. */
export async function servedRoutes(): Promise<readonly ShownRoute[]> {
  await using executor = createExecutor({ store: memoryStore(), journal: true });
  const handler = httpHandler(executor, { agents: {}, authorize: () => ({ callerId: 'docs' }) });
  const response = await handler(new Request('http://localhost/openapi.json'));
  const { paths } = (await response.json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      ...operation,
      name: `${method.toUpperCase()} ${path}`,
    })),
  );
}

/** The codes that an operation answers with, each with its status. */
function problemsOf({ responses }: Operation): readonly (readonly [code: string, status: string, title: string])[] {
  return Object.entries(responses).flatMap(([status, { description, content = {} }]) =>
    'application/problem+json' in content
      ? [...description.matchAll(/`([A-Z_]+)`: ([^`]+)\.(?= `|$)/g)].map(
          ([, code = '', title = '']) => [code, status, title] as const,
        )
      : [],
  );
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const code = (text: string) => `\`${cell(text)}\``;

function typeOf(schema: Schema): string {
  const { type, enum: words, const: word, items, anyOf, oneOf, properties } = schema;
  if (word !== undefined) return JSON.stringify(word);
  if (words) return words.map((each) => JSON.stringify(each)).join(' | ');
  const either = anyOf ?? oneOf;
  if (either) return either.map(typeOf).join(' | ');
  if (type === 'array') return items ? `${typeOf(items)}[]` : 'list';
  if (properties) return `{ ${fieldsOf(schema).join(', ')} }`;
  return type === undefined ? 'any JSON' : [type].flat().join(' | ');
}

function fieldsOf({ properties = {}, required = [] }: Schema): string[] {
  return Object.entries(properties).map(
    ([name, each]) => `${name}${required.includes(name) ? '' : '?'}: ${typeOf(each)}`,
  );
}

function routePart(route: ShownRoute, shared: ReadonlySet<string>): string[] {
  const { name, summary, description, parameters, requestBody, responses } = route;
  const body = requestBody?.content['application/json'].schema;
  const takes = parameters
    .filter((each) => each.in !== 'path')
    .map((each) => `| ${code(each.name)} | ${each.in} | ${cell(each.description ?? '')} |`);
  const answers = Object.entries(responses).flatMap(([status, { description, content = {} }]) =>
    'application/problem+json' in content
      ? []
      : [`| ${status} | ${Object.keys(content).map(code).join(', ')} | ${cell(description)} |`],
  );
  const errors = problemsOf(route).filter(([each]) => !shared.has(each));
  return [
    ...[`## \`${name}\``, '', `${summary} ${description}`, ''],
    ...(takes.length > 0 ? ['| parameter | in | what it says |', '| --- | --- | --- |', ...takes, ''] : []),
    ...(body?.properties ? [`Body: ${code(typeOf(body))}`, ''] : []),
    ...['| answer | type | what it is |', '| --- | --- | --- |', ...answers, ''],
    ...(errors.length > 0
      ? [`Errors: ${errors.map(([each, status]) => `${status} ${code(each)}`).join(', ')}.`, '']
      : []),
  ];
}

const intro = [
  '# HTTP API',
  '',
  'What `httpHandler` of `pawl/http` serves, made by `npm run docs` from the OpenAPI document that it serves itself at `GET /openapi.json`.',
  '[HTTP handler](web.md) says who may do what: each route asks `authorize` with its action. Paths are below `basePath`.',
  '',
];

/** docs/http-api.md: each route with its action, parameters, body, answers and errors. */
export async function httpApiPage(): Promise<string> {
  const routes = await servedRoutes();
  const [first, ...others] = routes.map(problemsOf);
  const everywhere = (first ?? []).filter(([each]) =>
    others.every((problems) => problems.some(([other]) => other === each)),
  );
  const shared = new Set(everywhere.map(([each]) => each));
  return `${[
    ...intro,
    ...['| route | what it does |', '| --- | --- |'],
    ...routes.map(({ name, summary }) => `| ${code(name)} | ${cell(summary)} |`),
    '',
    'Errors are `application/problem+json`: `{ type, title, status, code, detail? }`. Each route may answer with these:',
    '',
    ...['| status | code | title |', '| --- | --- | --- |'],
    ...everywhere.map(([each, status, title]) => `| ${status} | \`${each}\` | ${cell(title)} |`),
    '',
    ...routes.flatMap((route) => routePart(route, shared)),
  ]
    .join('\n')
    .trimEnd()}\n`;
}
