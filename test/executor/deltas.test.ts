import type { RunDelta } from 'pawl/stores/kit';
import { callTool, reply } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { hostOf, toolOf } from '../fixtures/host.ts';
import { isWrite, watchedStore } from '../fixtures/watched-store.ts';

const STEPS = 60;
const payload = 'x'.repeat(2_000);

async function writesOf(effect: 'read' | 'once') {
  const store = watchedStore();
  const script = [...Array.from({ length: STEPS }, (_, n) => callTool('work', { n })), reply('end')];
  const host = hostOf({
    script,
    tools: [toolOf('work', effect, () => payload)],
    store,
    agent: { maxSteps: 100 },
  });
  const image = { mediaType: 'image/png', data: 'A'.repeat(40_000) };
  const result = await host.run({ runId: 'r', inputs: { secret: payload }, images: [image] });
  const [first, ...rest] = store.log.filter(isWrite);
  return { result, first, deltas: rest.map(({ args }) => args[0] as RunDelta), methods: store.methods };
}

describe('what a run writes', () => {
  test.for(['read', 'once'] as const)(
    'is the whole record once, and then only what is new (%s calls) (checkpoint 3)',
    async (effect) => {
      const { result, first, deltas, methods } = await writesOf(effect);
      expect(methods.filter((name) => name === 'save')).toHaveLength(1);
      expect(first?.args[0]).toMatchObject({ revision: 1, inputs: { secret: payload }, images: [{}] });
      let messages = 1;
      for (const [i, delta] of deltas.entries()) {
        expect(delta).toMatchObject({ runId: 'r', revision: i + 2, from: messages });
        for (const key of ['inputs', 'images', 'messages']) expect(delta.head).not.toHaveProperty(key);
        messages += delta.messages.length;
      }
      expect(messages).toBe(result.messages.length);
    },
  );

  test.for(['read', 'once'] as const)(
    'grows with what was said, not with its square (%s calls) (checkpoint 3)',
    async (effect) => {
      const { result, deltas } = await writesOf(effect);
      const said = JSON.stringify(result.messages.slice(1)).length;
      const written = deltas.reduce((sum, delta) => sum + JSON.stringify(delta).length, 0);
      expect(written).toBeLessThan(2 * said);
      const heads = deltas.map(({ head }) => JSON.stringify(head).length);
      expect(Math.max(...heads.slice(0, -1))).toBeLessThan(2_000);
    },
  );
});
