import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, test } from 'vitest';
import { routes } from '../../src/http/routes.ts';
import type { JsonObject } from '../../src/values/json.ts';
import { everyRoute } from './every-route.ts';
import { webHost } from './web-host.ts';

const description = async () => (await webHost({ http: { basePath: '/api' } }).ask('/api/openapi.json')).body;

describe('GET /openapi.json', () => {
  test('is a valid description in OpenAPI 3.1, by a published validator (web 17)', async () => {
    const validator = new Validator();
    const result = await validator.validate(await description());
    expect(result).toMatchObject({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test('has each route of the table with its method, action, body and answers, but for itself (web 17)', async () => {
    const { paths, servers } = await description();
    const others = routes.filter(({ path }) => path !== '/openapi.json');
    const operations = Object.values(paths as Record<string, object>).flatMap((each) => Object.keys(each));
    expect(operations).toHaveLength(others.length);
    expect(servers).toEqual([{ url: '/api' }]);
    for (const route of others) {
      const operation = paths[route.path.replaceAll(/:(\w+)/g, '{$1}')][route.method.toLowerCase()];
      for (const status of Object.keys(route.answers)) expect(operation.responses).toHaveProperty(status);
      for (const action of 'actions' in route ? route.actions : [route.action])
        expect(operation.description).toContain(`\`${action}\``);
      expect('requestBody' in operation).toBe(route.method === 'POST');
      expect(operation.responses['401'].content['application/problem+json']).toBeDefined();
    }
    const ids = Object.values(paths as Record<string, Record<string, { operationId: string }>>).flatMap((each) =>
      Object.values(each).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  test.for(everyRoute({ runId: 'r' }).flatMap(({ name, route }) => (route.body ? [[name, route.body] as const] : [])))(
    'the body of %s takes no field that it does not name (web 19)',
    ([name, schema]) => {
      // useChat sends fields of the page's own; none of them is read.
      expect(schema).toMatchObject({ additionalProperties: name === 'POST /chat' });
      const fields = Object.keys((schema as JsonObject).properties as object);
      expect(fields.filter((field) => ['callerId', 'labels', 'by', 'runId', 'all'].includes(field))).toEqual([]);
    },
  );
});
