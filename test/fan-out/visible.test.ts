import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { callTool, fail, hang, reply, type ScriptedEntry, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import type { InspectionEvent } from 'xstate';
import { toolOf } from '../fixtures/host.ts';
import { startClient } from '../inspect/client.ts';
import { reachable } from '../inspect/search.ts';
import { leaksIn, requestError, secret } from '../inspect/secrets.ts';
import { asked, freshPath, until } from './asking.ts';

/** A model with a key in it, as those of providers have. */
const withKey = (script: readonly ScriptedEntry[]) =>
  Object.assign(scriptedModel(script), {
    config: { apiKey: secret('a model'), headers: () => ({ authorization: secret('its headers') }) },
    settings: { headers: { authorization: secret('its settings') } },
  });

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'utf8'));

describe('an inspector', () => {
  test('sees the fan-out as one actor, its models as children of it, and each state that it is in (fan-out 1)', async () => {
    const client = await startClient();
    const call = asked({ models: { a: [callTool('look'), reply('x')], b: [reply('y')] }, tools: [toolOf('look')] });
    await call.start({ inspect: client.inspect });
    await client.arrived();
    const root = client.actor('fan-out');
    for (const name of ['open', 'model(0)', 'model(1)', 'close']) {
      expect(client.actor(name), name).toMatchObject({ parentId: root.sessionId, rootId: root.sessionId });
    }
    const states = client.received.flatMap((frame) => {
      if (frame.type !== '@xstate.snapshot' || frame.sessionId !== root.sessionId) return [];
      const { value } = frame.snapshot as unknown as { value: object | string };
      return [typeof value === 'string' ? value : Object.keys(value)[0]];
    });
    expect([...new Set(states)]).toEqual(['opening', 'asking', 'closing', 'closed']);
    expect(call.warned).toEqual([]);
  });

  test('sees no key and no header of a model, neither do the files, the log, the events and the result (fan-out 1)', async () => {
    const client = await startClient();
    const path = freshPath();
    const heard: InspectionEvent[] = [];
    const events: string[] = [];
    const call = asked({
      models: {
        a: withKey([callTool('look'), reply('x')]),
        b: withKey([fail(requestError('an error of the model', { isRetryable: false }))]),
        c: withKey([hang()]),
      },
      tools: [toolOf('look')],
      path,
      judge: withKey([]),
    });
    const next = (event: InspectionEvent) => {
      heard.push(event);
      client.observer.next?.(event);
    };
    const running = call.start({
      inspect: { next } as never,
      onEvent: (_, event) => void events.push(JSON.stringify(event)),
    });
    await until(() => call.calls()[2] === 1 && events.filter((event) => event.includes('run.ended')).length === 2);
    const underWay = filesBelow(dirname(path));
    call.caller.abort(requestError('the reason'));
    const result = await running;
    await client.arrived();
    expect(result.responses.map(({ stopReason }) => stopReason)).toEqual(['answered', 'MODEL', 'cancelled']);
    expect(client.frames.length).toBeGreaterThan(10);
    const kept = [...underWay, ...filesBelow(dirname(path))];
    const log = call.warned.map((warning) => JSON.stringify(warning));
    for (const [what, texts] of Object.entries({
      frames: client.frames,
      kept,
      log,
      events,
      result: [JSON.stringify(result)],
    })) {
      expect(leaksIn(texts), what).toEqual([]);
    }
    expect(leaksIn(reachable(heard)), 'inspection events, walked').toEqual([]);
  });
});
