import { limitIn } from '../../http/cursor.ts';
import { jsonAnswer } from '../../http/problem.ts';
import type { GrantedCall, Route } from '../../http/route.ts';
import { answerSchemaOf, anything, countSchema, pageQuery, text } from '../../http/schemas.ts';
import type { Studio } from '../studio.ts';
import { machineDrawing } from './machine-view.ts';
import { messagesPage, placeInMessages } from './messages.ts';
import { missingFor, readInspected, recordView } from './record-view.ts';
import { Transcripts } from './transcripts.ts';
import { valueIn, valuePage } from './value-page.ts';

const one = { schema: text } as const;

const chartRoute: Route = {
  method: 'GET',
  path: '/runs/:runId/chart',
  summary: 'Shows the drawing of the machine of a workflow.',
  action: 'inspect',
  answers: {
    200: {
      description: 'The drawing.',
      schema: answerSchemaOf({ states: { type: 'array', items: anything } }, ['states']),
    },
  },
  handle: async (call: GrantedCall) =>
    jsonAnswer(machineDrawing((await readInspected(call, { messages: { from: 0, to: 0 } })).seen)),
};

/** The routes of one run's record, its messages and its long values. */
export function recordRoutes({ tools, resume }: Pick<Studio, 'tools' | 'resume'>): readonly Route[] {
  const transcripts = new Transcripts();
  return [
    {
      method: 'GET',
      path: '/runs/:runId/record',
      summary: 'Shows the record of a run, and what becomes of it.',
      action: 'inspect',
      answers: { 200: { description: 'The record.', schema: answerSchemaOf({ line: anything, verdict: anything }) } },
      handle: async (call: GrantedCall) => jsonAnswer(await recordView(call, { transcripts, tools, resume })),
    },
    chartRoute,
    {
      method: 'GET',
      path: '/runs/:runId/messages',
      summary: 'Shows the recorded messages of a run, by pages.',
      action: 'inspect',
      query: pageQuery,
      answers: {
        200: {
          description: 'A page of messages. `missing` says why there are none.',
          schema: answerSchemaOf(
            { items: { type: 'array', items: anything }, total: countSchema, next: text, missing: text },
            ['items', 'total'],
          ),
        },
      },
      handle: async (call: GrantedCall) => {
        const { after: [after] = [], limit: [limit] = [] } = call.query;
        const page = { from: placeInMessages(after), limit: limitIn(limit) };
        const { seen } = await readInspected(call, { messages: { from: page.from, to: page.from + page.limit } });
        const found = messagesPage(seen, page);
        return jsonAnswer(seen.record ? found : { ...found, missing: missingFor(seen, call.grant.all === true) });
      },
    },
    {
      method: 'GET',
      path: '/runs/:runId/value',
      summary: 'Shows a piece of a long value of a run, as text.',
      action: 'inspect',
      query: {
        message: { ...one, description: 'The index of a message.' },
        call: { ...one, description: 'The id of a call.' },
        wait: { ...one, description: 'The id of an open wait.' },
        part: {
          ...one,
          description:
            'The index of a part of the message; `input`, `output`; `critic`, `raw`; of a wait the name of its part.',
        },
        from: { ...one, description: 'The `next` of the piece before.' },
      },
      answers: {
        200: {
          description: 'A piece.',
          schema: answerSchemaOf({ kind: { enum: ['text', 'json'] }, text, chars: countSchema, next: text }, [
            'kind',
            'text',
            'chars',
          ]),
        },
      },
      handle: async (call: GrantedCall) => {
        const value = await valueIn(call, call.query);
        return jsonAnswer(valuePage(value, call.query));
      },
    },
  ];
}
