import { jsonAnswer } from '../http/problem.ts';
import type { GrantedCall, Route } from '../http/route.ts';
import { answerOf, anything } from '../http/schemas.ts';
import type { Studio } from './studio.ts';
import type { StoreView } from './wire.ts';

/** `GET /store`: what the store can do, and what a reader may do. */
export function storeRoute(studio: Studio): Route {
  return {
    method: 'GET',
    path: '/store',
    summary: 'What the store holds, and what may be done here',
    action: 'inspect',
    answers: {
      200: { description: 'The store', schema: answerOf({ parts: anything, may: anything, counts: anything }) },
    },
    handle: async ({ grant }: GrantedCall) => jsonAnswer(storeView(studio, grant.by)),
  };
}

function storeView({ title, place, write, apply, served }: Studio, by: StoreView['by']): StoreView {
  const { executor } = served;
  return {
    title,
    place,
    parts: { journal: executor.hasJournal, waits: true, commands: true, history: true, threads: true },
    may: { write, apply: apply !== undefined },
    ...(by ? { by } : {}),
    counts: {},
    isPartial: true,
    recordVersion: 2,
  };
}
