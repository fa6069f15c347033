import type { JsonObject } from '../../values/json.ts';
import { answerSchemaOf, anything, countSchema, objectOf, text, texts, time, upTo } from '../schemas.ts';
import { runStates } from './run-line.ts';

/** Longest texts of a body, in UTF-16 units; the whole body is bounded too. */
const PROMPT = 1_000_000;
const REASON = 4_096;

const errorSchema = answerSchemaOf({ code: text, message: text });

/** How a run ended. */
export const endSchema: JsonObject = answerSchemaOf(
  {
    status: { enum: ['ok', 'error', 'timeout', 'cancelled', 'killed', 'interrupted', 'waiting'] },
    output: text,
    data: anything,
    error: errorSchema,
    kept: { const: true, description: 'The run ended before this request started it.' },
    endedAt: time,
  },
  ['status', 'output'],
);

const lineFields: JsonObject = {
  runId: text,
  agentId: text,
  agentName: text,
  prompt: { type: 'string', description: 'Its first 200 characters.' },
  state: { enum: [...runStates] },
  where: text,
  why: text,
  code: text,
  steps: countSchema,
  maxSteps: countSchema,
  tokens: countSchema,
  usd: { type: 'number' },
  beganAt: time,
  updatedAt: time,
  owner: { type: 'string', description: 'Only for a caller who sees the runs of all.' },
  children: countSchema,
  labels: texts,
  traceId: { type: 'string', description: 'The trace of `pawl/otel`.' },
};
const lineRequired = [
  'runId',
  'agentId',
  'agentName',
  'prompt',
  'state',
  'where',
  'steps',
  'tokens',
  'children',
  'labels',
];

/** A run in a list. */
export const lineSchema: JsonObject = answerSchemaOf(lineFields, lineRequired);

const waitFields: JsonObject = {
  id: text,
  kind: { enum: ['approval', 'question', 'event', 'timer', 'child', 'retry', 'limit'] },
  createdAt: time,
  dueAt: time,
  step: countSchema,
  callId: text,
  tool: text,
  input: anything,
  modelInput: anything,
};
const waitRequired = ['id', 'kind', 'createdAt', 'step'];

/** One run. */
export const viewSchema: JsonObject = answerSchemaOf(
  {
    ...lineFields,
    rootRunId: text,
    parentRunId: text,
    waits: { type: 'array', items: answerSchemaOf(waitFields, waitRequired) },
    result: endSchema,
  },
  [...lineRequired, 'rootRunId', 'waits'],
);

/** An open wait, and the run that has it. */
export const listedWaitSchema: JsonObject = answerSchemaOf(
  {
    ...waitFields,
    runId: text,
    rootRunId: text,
    path: { type: 'array', items: answerSchemaOf({ runId: text, agentId: text, callId: text }, ['runId']) },
    agentId: text,
    callerId: text,
    labels: texts,
    updatedAt: time,
    answers: { type: 'array', items: answerSchemaOf({ how: text, by: anything, at: time }, ['how']) },
    isAnswered: { enum: [true] },
  },
  [...waitRequired, 'runId', 'rootRunId', 'path', 'agentId', 'callerId', 'labels'],
);

export const startBody: JsonObject = objectOf(
  {
    agent: upTo(512, 1),
    prompt: upTo(PROMPT),
    inputs: { type: 'object', description: "Values for the agent's tools: plain JSON." },
    images: {
      type: 'array',
      maxItems: 32,
      items: objectOf(
        {
          mediaType: upTo(128, 1),
          data: { type: 'string', description: 'Base64.' },
        },
        ['mediaType', 'data'],
      ),
    },
  },
  ['agent', 'prompt'],
);

export const cancelBody: JsonObject = objectOf({ reason: upTo(REASON) });

export const steerBody: JsonObject = objectOf(
  { text: upTo(PROMPT, 1), children: { type: 'boolean', description: 'Running runs below it get the message too.' } },
  ['text'],
);

export const eventBody: JsonObject = objectOf(
  {
    event: {
      type: 'object',
      properties: { type: upTo(REASON, 1) },
      required: ['type'],
      description: 'Its other fields are any JSON.',
    },
    id: { ...upTo(128, 1), description: 'Names the event: sent again with the same id, it counts once.' },
    mustTake: { type: 'boolean', description: 'Refuses an event that the present state does not take.' },
  },
  ['event'],
);

export const answerBody: JsonObject = objectOf(
  {
    how: { enum: ['approve', 'deny', 'answer', 'wake'] },
    value: { description: 'For `answer`: any JSON that fits the schema of the wait.' },
    input: { description: 'For `approve`: the input of the call as the person changed it.' },
    note: { ...upTo(REASON), description: 'For `approve`: for those who read the decision later; not for the model.' },
    reason: { ...upTo(REASON), description: 'For `deny`: the model reads it.' },
    digest: { ...upTo(256), description: 'That of the wait as the person saw it.' },
  },
  ['how'],
);

/** What became of a command. */
export const stateSchemaOf = (...states: readonly string[]): JsonObject =>
  answerSchemaOf({ runId: text, state: { enum: [...states] } });
