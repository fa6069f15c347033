import { AsyncLocalStorage } from 'node:async_hooks';
import type { UIMessage } from 'ai';
import { type MemoryStore, memoryStore } from 'pawl';
import { callTool, reply } from 'pawl/testing';
import { expect, test } from 'vitest';
import { wrapStore } from '../../../src/store/read-only.ts';
import { LeaseLostError } from '../../../src/values/errors.ts';
import { randomFrom, seed, torture } from '../../crash/random.ts';
import { gate } from '../../fixtures/host.ts';
import { chatHost, chunksIn, mailTool, said } from './chat-host.ts';
import { read } from './page.ts';

/** The two that call the store at the same time. */
type Side = 'boot' | 'post';

type Calls = { readonly [S in Side]: number };

/** A store whose calls are held by hand: of each side the call with a number waits until it is let through. */
function held(store: MemoryStore, at: Calls) {
  const side = new AsyncLocalStorage<Side>();
  const calls = { boot: 0, post: 0 };
  const gates = { boot: gate(), post: gate() };
  const names: string[] = [];
  const watched = wrapStore(store, (name, call) => async (...given) => {
    const who = side.getStore();
    if (who) calls[who] += 1;
    if (who && calls[who] === at[who]) {
      names.push(`${who}: ${name}`);
      await gates[who].pass();
    }
    return call(...given);
  });
  return { store: watched, by: <T>(who: Side, work: () => T) => side.run(who, work), gates, names, calls };
}

/** A store of a process: after its end no call of it has an effect, and none of its claims is held. */
function mortal(store: MemoryStore) {
  const claims: Parameters<MemoryStore['release']>[0][] = [];
  let isDead = false;
  const reached = wrapStore(store, (name, call) => async (...given) => {
    if (isDead) throw new LeaseLostError('the process is dead');
    const result = await call(...given);
    if (name === 'claim' && result) claims.push(result as (typeof claims)[number]);
    return result;
  });
  const kill = async () => {
    isDead = true;
    for (const claim of claims) await store.release(claim).catch(() => {});
  };
  return { store: reached, kill };
}

const script = () => [callTool('mail', { to: 'bo' }), reply('The mail is out.')];

/** A conversation whose server dies while its run waits for a person. @returns what is stored, and the page */
async function askedAndKilled(): Promise<{ store: MemoryStore; messages: UIMessage[] }> {
  const store = memoryStore();
  const process = mortal(store);
  const defaults = { waitLingerMs: 60_000 };
  const host = chatHost({ script: script(), tools: [mailTool()], store: process.store, defaults });
  const asked = said('1', 'Mail Bo.') as UIMessage;
  const { message } = await read(
    await chunksIn(await host.ask('/chat', { body: { id: 'chat', messages: [asked], trigger: 'submit-message' } })),
  );
  await process.kill();
  return { store, messages: [asked, message as UIMessage] };
}

/** The page after a click on Approve. */
function approved(messages: readonly UIMessage[]): UIMessage[] {
  const page = structuredClone(messages) as UIMessage[];
  for (const part of page.at(-1)?.parts ?? [])
    if ('state' in part && part.state === 'approval-requested' && 'approval' in part)
      Object.assign(part, { state: 'approval-responded', approval: { ...part.approval, approved: true } });
  return page;
}

/** Boots a server and posts an approval to it; both wait at a call of the store, first the boot. @returns how many calls they made */
async function bootAndPost(at: Calls): Promise<Calls> {
  const { store, messages } = await askedAndKilled();
  const slow = held(store, at);
  let mails = 0;
  const host = chatHost({
    ...{ script: script().slice(1), tools: [mailTool(() => `mail ${++mails}`)], store: slow.store },
  });
  const booted = slow.by('boot', () => host.executor.recover());
  await Promise.race([booted, slow.gates.boot.reached]);
  const page = approved(messages);
  const body = { id: 'chat', messages: page, trigger: 'submit-message', messageId: page.at(-1)?.id };
  const answer = slow.by('post', () => host.ask('/chat', { body })).then(chunksIn);
  // It waits at its call, it is over, or it needs what the boot holds.
  await Promise.race([slow.gates.post.reached, answer, new Promise((resolve) => setTimeout(resolve, 5))]);
  slow.gates.boot.open();
  await booted;
  const calls = { ...slow.calls };
  slow.gates.post.open();
  const where = `held: ${slow.names.join(', ')}`;
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error(where)), 5_000).unref());
  const { message } = await read(await Promise.race([answer, late]), page.at(-1));
  const texts = message?.parts.flatMap((part) => (part.type === 'text' ? part.text : []));
  expect({ texts, mails }, where).toEqual({ texts: ['The mail is out.'], mails: 1 });
  return { boot: calls.boot, post: slow.calls.post };
}

test(`An approval that is posted at any moment of a boot counts once, and the text continues in its stream (seed ${seed}) (web 30, 35)`, async () => {
  const random = randomFrom(seed);
  const { boot, post } = await bootAndPost({ boot: 0, post: 0 });
  expect(Math.min(boot, post)).toBeGreaterThan(5);
  for (let i = 1; i <= boot; i += 1) {
    await bootAndPost({ boot: i, post: 0 });
    for (let j = 0; j < torture; j += 1) await bootAndPost({ boot: i, post: 1 + Math.floor(random() * post) });
  }
});
