import type { Model, RunResult } from 'pawl';
import { callTool, reply, type ScriptedEntry, testClock } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { turnKey } from '../../fixtures/child-id.ts';
import { hostOf, toolOf } from '../../fixtures/host.ts';
import { mortalProcess } from '../../fixtures/mortal-process.ts';
import { type NotingBudget, notingBudget } from '../../fixtures/noting-ports.ts';
import { brokenAfter, named } from './lists.ts';

const clock = testClock();
const three = [callTool('pay', { n: 1 }, 'one'), callTool('pay', { n: 2 }, 'two'), reply('end')];
const nextOf: ScriptedEntry = ({ messages }) => three[(messages.length - 1) / 2] ?? reply('more than was asked');
const many = (entry: ScriptedEntry) => Array(9).fill(entry);

/** A model that answers the first turn, and breaks off in each later one, after 30 tokens. */
function failingLater(): Model {
  const whole = named('anthropic/opus', many(nextOf));
  const broken = brokenAfter(named('anthropic/opus', []), 30);
  const first = whole.doStream.bind(whole);
  const doStream: Model['doStream'] = (options) =>
    options.prompt.length > 2 ? broken.doStream(options) : first(options);
  return Object.assign(whole, { doStream });
}

/** Two lives of a run: the first one dies after this write, or in this request to a model. */
async function lives(dies: { readonly write?: number; readonly request?: number }) {
  const budget = notingBudget();
  const paid: unknown[] = [];
  const keys: string[] = [];
  const { write = Number.POSITIVE_INFINITY, request = Number.POSITIVE_INFINITY } = dies;
  const live = async (process: ReturnType<typeof mortalProcess>, dying: number): Promise<RunResult | undefined> => {
    let requests = 0;
    const list = [failingLater(), named('openai/gpt', many(nextOf))].map((model) => {
      const mortal = process.model(model);
      const doStream: Model['doStream'] = (options) => {
        requests += 1;
        if (requests === dying) process.die();
        return mortal.doStream(options);
      };
      return { model: { ...mortal, doStream }, maxAttempts: 1 };
    });
    const noteKey = (call: { readonly key: string }, next: () => Promise<never>) => {
      keys.push(call.key);
      return next();
    };
    const { run } = hostOf({
      ...{
        models: { fast: list },
        clock,
        store: process.store,
        ports: { budget: process.ports(budget as NotingBudget) },
      },
      tools: [toolOf('pay', 'once', ({ n }) => void paid.push(n))],
      middleware: [{ model: noteKey }],
      defaults: { modelAttempts: 1 },
    });
    return Promise.race([run({ runId: 'r' }), process.died]);
  };
  const first = mortalProcess(undefined, write);
  const ended = await live(first, request);
  const result = ended ?? (await live(mortalProcess(await first.left()), Number.POSITIVE_INFINITY));
  return { result, budget, paid, keys, isDead: first.isDead };
}

describe('a run with a list of models', () => {
  test.for(['write', 'request'] as const)(
    'that is killed at any %s ends as without the kill: no call twice, one answer a step, each model paid once (failover 2, 22, 23, 31)',
    async (what) => {
      let at = 1;
      for (; at < 40; at++) {
        const { result, budget, paid, keys, isDead } = await lives({ [what]: at });
        const where = `died at ${what} ${at}`;
        expect(result, where).toMatchObject({ status: 'ok', output: 'end', iterations: 3 });
        // A call whose process died is unknown, and is not made again.
        expect(new Set(paid).size, where).toBe(paid.length);
        const counted = [turnKey('r', 1), turnKey('r', 2), `${turnKey('r', 2)}~2`, `${turnKey('r', 3)}~2`];
        expect([...budget.counted.keys()].toSorted(), where).toEqual(counted);
        expect(budget.open.size, where).toBe(0);
        expect(new Set(keys).size, where).toBe(3);
        if (!isDead) break;
      }
      expect(at).toBeGreaterThan(3);
      expect(at).toBeLessThan(40);
    },
  );
});
