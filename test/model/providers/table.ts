import {
  InvalidArgumentError,
  InvalidPromptError,
  NoSuchModelError,
  UnsupportedFunctionalityError,
} from '@ai-sdk/provider';
import { InvalidMessageRoleError, MessageConversionError } from 'ai';
import type { Answer, Format } from './provider-server.ts';
import { breaksWith, isCut, isUnparsable, refuses, replies } from './provider-server.ts';

/** Where the failure meets a run. In all but the first something is recorded: a call of a tool that may run once. */
export const positions = ['first', 'later', 'phase', 'child', 'woken'] as const;
export type Position = (typeof positions)[number];

/**
 * What becomes of the run while the failure stays, and after it:
 * - `again`: the model is asked again at once. `waits`: the run rests until a time, is asked again and ends well.
 * - `person`: the run rests, and asks for a person. `told`: the caller of the sub-agent reads the failure and ends well.
 * - `given back`: the process leaves the run, and it ends well where the setup is complete.
 * - `ends CODE`: the run ends with this error. `ok`: it ends well, with the answer as it is.
 */
export type Verdict =
  | 'again, waits'
  | 'waits'
  | 'person'
  | 'given back'
  | 'told'
  | 'again, told'
  | `ends ${string}`
  | `again, ends ${string}`
  | 'ok';

export interface Row {
  readonly failure: string;
  /** What the provider answers; or what the model throws before it asks: a key that is missing, or this error. */
  readonly answer: Answer | 'no key' | { readonly thrown: () => unknown };
  /** The formats that word it so; absent = all. */
  readonly formats?: readonly Format[];
  /** A failure that only a stream has. */
  readonly isStreamed?: true;
  /** It refuses the content of this request, or it is an answer without content: only this may end what is recorded. */
  readonly isOwnEnd?: true;
  readonly verdicts: { readonly [position in Position]: Verdict };
}

type Column = readonly [first: Verdict, later: Verdict, phase: Verdict, child: Verdict, woken: Verdict];
const row = (failure: string, answer: Row['answer'], column: Column, rest: Partial<Row> = {}): Row => {
  const [first, later, phase, child, woken] = column;
  return { failure, answer, verdicts: { first, later, phase, child, woken }, ...rest };
};
/** What a model throws before it asks needs no wire. */
const thrown = (failure: string, error: () => unknown, column: Column, rest: Partial<Row> = {}): Row =>
  row(failure, { thrown: error }, column, { formats: ['anthropic'], ...rest });
const own = { isOwnEnd: true } as const;
const streamed = { isStreamed: true } as const;

const wrong = { status: 400, message: 'messages.0: a role is not known' };
const unpaid = { status: 400, message: 'Your credit balance is too low to access the API.' };
const overloaded = { status: 529, message: 'Overloaded' };
const limited = { status: 429, message: 'Too many requests' };
const quota = { status: 429, message: 'You exceeded your current quota, see billing.', code: 'insufficient_quota' };

// In the order of the positions: first, later, phase, child, woken.
const passing: Column = ['again, waits', 'again, waits', 'again, waits', 'again, waits', 'again, waits'];
const resting: Column = ['waits', 'waits', 'waits', 'waits', 'waits'];
const account: Column = ['ends MODEL', 'person', 'person', 'told', 'person'];
const refusal: Column = ['ends MODEL', 'ends MODEL', 'ends MODEL', 'told', 'ends MODEL'];
const nothing: Column = [
  'again, ends MODEL',
  'again, ends MODEL',
  'again, ends MODEL',
  'again, told',
  'again, ends MODEL',
];
const bug: Column = ['again, ends MODEL', 'again, waits', 'again, waits', 'again, told', 'again, waits'];
const answered: Column = ['ok', 'ok', 'ok', 'ok', 'ok'];

/** Written by hand from clauses 5, 6 and 8: no code under test computes it. */
export const rows: readonly Row[] = [
  row('400 for the request', refuses(wrong), refusal, own),
  row('400 for a credit balance', refuses(unpaid), account),
  row(
    '400 for a long prompt',
    refuses({ status: 400, message: 'prompt is too long: 208310 tokens > 200000 maximum' }),
    ['ends CONTEXT_TOO_LONG', 'ends CONTEXT_TOO_LONG', 'ends CONTEXT_TOO_LONG', 'told', 'ends CONTEXT_TOO_LONG'],
    own,
  ),
  row('402', refuses({ status: 402, message: 'Payment required' }), account),
  row('401', refuses({ status: 401, message: 'invalid x-api-key', code: 'invalid_api_key' }), account),
  row('403', refuses({ status: 403, message: 'Country, region, or territory not supported' }), account),
  row('404', refuses({ status: 404, message: 'The model does not exist', code: 'model_not_found' }), account),
  row('408', refuses({ status: 408, message: 'Request timeout' }), passing),
  ...[405, 406, 409, 410, 411, 412, 451].map((status) =>
    row(`${status}`, refuses({ status, message: 'No.' }), passing),
  ),
  row('413', refuses({ status: 413, message: 'Request exceeds the maximum size' }), refusal, own),
  ...[414, 415, 422, 431].map((status) => row(`${status}`, refuses({ status, message: 'No.' }), refusal, own)),
  row('429', refuses(limited), passing),
  row('429 with a short retry-after', refuses(limited, { 'retry-after': '2' }), passing),
  row('429 with a long retry-after', refuses(limited, { 'retry-after': '120' }), resting),
  row('429 for a quota', refuses(quota), account, {
    formats: ['openai', 'google', 'mistral', 'compatible'],
  }),
  // Under the name of a rate limit, as these write each 429.
  row('429 for a rate limit that names a quota', refuses(quota), passing, { formats: ['anthropic', 'gateway'] }),
  row('498', refuses({ status: 498, message: 'Flex capacity exceeded' }), passing),
  row('500', refuses({ status: 500, message: 'Internal server error' }), passing),
  row('529', refuses(overloaded), passing),
  row('an overload within a stream', breaksWith(overloaded), passing, streamed),
  row('a refusal of the request within a stream', breaksWith(wrong), refusal, { ...own, ...streamed }),
  row('no credit within a stream', breaksWith(unpaid), account, streamed),
  row('a connection cut in the middle', isCut, passing),
  row('a body that is no JSON', isUnparsable, passing),
  row('a blank answer', replies({ text: ' \n', end: 'stop' }), nothing, own),
  row('thoughts alone', replies({ thought: 'Hm.', end: 'stop' }), nothing, own),
  row(
    'a refusal by a content filter',
    replies({ end: 'refused' }),
    ['ends CONTENT_REFUSED', 'ends CONTENT_REFUSED', 'ends CONTENT_REFUSED', 'told', 'ends CONTENT_REFUSED'],
    // The package of Mistral has no word for it.
    { ...own, formats: ['anthropic', 'openai', 'google', 'compatible', 'gateway'] },
  ),
  row('an answer cut by its length', replies({ text: 'Half', end: 'length' }), answered),
  row('a call that Google could not write', replies({ end: 'malformed' }), nothing, { ...own, formats: ['google'] }),
  row('a call that Google did not expect', replies({ end: 'unexpected' }), nothing, { ...own, formats: ['google'] }),
  row('an end for an error', replies({ text: 'Half', end: 'failed' }), nothing, { ...own, formats: ['gateway'] }),
  row('an end for a reason that is not known, without content', replies({ end: 'other' }), nothing, own),
  row('a pause of the provider at each turn', replies({ text: 'Half', end: 'paused' }), refusal, {
    ...own,
    formats: ['anthropic'],
  }),
  row('no key', 'no key', ['ends MODEL', 'given back', 'given back', 'given back', 'given back'], {
    formats: ['anthropic', 'openai', 'google'],
  }),
  thrown('a text that is thrown', () => 'the proxy is away', passing),
  thrown('a bug of the model', () => new TypeError('x is not a function'), bug),
  thrown(
    'a model that does not exist',
    () => new NoSuchModelError({ modelId: 'm', modelType: 'languageModel' }),
    account,
  ),
  ...[
    new UnsupportedFunctionalityError({ functionality: 'x' }),
    new InvalidPromptError({ prompt: [], message: 'x' }),
    new InvalidArgumentError({ argument: 'x', message: 'x' }),
    new MessageConversionError({ originalMessage: { role: 'user', parts: [] }, message: 'x' }),
    new InvalidMessageRoleError({ role: 'x' }),
  ].map((error) => thrown(error.name, () => error, refusal, own)),
  row('no word before the length limit', replies({ thought: 'Hm.', end: 'length' }), nothing, own),
];
