import { createExecutor, memoryStore } from 'pawl';
import { hang, reply, scriptedModel } from 'pawl/testing';
import { expect, test } from 'vitest';
import { createActor, waitFor } from 'xstate';
import { clerk, deskMachine } from '../../docs/examples/desk/desk.ts';

const tickets = ['a', 'b', 'c'].map((id) => ({ id, text: `My ${id} is broken.` }));
const answered = (count: number) => (snapshot: { context: { answers: object } }) =>
  Object.keys(snapshot.context.answers).length === count;

test('a desk that spawns several runs is persisted and restored, and each ticket is answered once', async () => {
  const store = memoryStore();
  // The first process dies while two clerks still think.
  const hasty = scriptedModel([reply('Fixed.'), hang(), hang()]);
  const first = createExecutor({ models: { fast: hasty }, agents: [clerk], store });
  const desk = createActor(deskMachine(first)).start();
  for (const ticket of tickets) desk.send({ type: 'ticket.opened', ticket });
  await waitFor(desk, answered(1));
  const persisted = JSON.stringify(desk.getPersistedSnapshot());
  expect(persisted).not.toContain('messages":[{');
  desk.stop();
  await first.shutdown();

  const model = scriptedModel([reply('Fixed.'), reply('Fixed.')]);
  const second = createExecutor({ models: { fast: model }, agents: [clerk], store });
  const restored = createActor(deskMachine(second), { snapshot: JSON.parse(persisted) }).start();
  await waitFor(restored, answered(3));
  expect(Object.values(restored.getSnapshot().context.answers)).toEqual(['Fixed.', 'Fixed.', 'Fixed.']);
  expect(model.calls).toHaveLength(2);
  expect(await store.listInterrupted()).toEqual([]);
});

test('a ticket that is withdrawn cancels its run, and the others continue', async () => {
  const store = memoryStore();
  const executor = createExecutor({ models: { fast: scriptedModel([hang(), reply('Fixed.')]) }, store });
  const desk = createActor(deskMachine(executor)).start();
  for (const ticket of tickets.slice(0, 2)) desk.send({ type: 'ticket.opened', ticket });
  await waitFor(desk, answered(1));
  const [live] = executor.runs.get();
  desk.send({ type: 'ticket.withdrawn', id: String(live?.runId.replace('ticket.', '')) });
  await waitFor(desk, answered(2));
  expect(Object.values(desk.getSnapshot().context.answers).toSorted()).toEqual(['Fixed.', 'cancelled']);
  expect(await store.listInterrupted()).toEqual([]);
});
