/*
 * How providers write a reply: its body, and the events of its stream. The first event has no content yet.
 */

/** What a reply has, in no provider's words. */
export interface Said {
  readonly text?: string;
  readonly thought?: string;
  /** Its input is a text where it is not whole: the arguments as far as they were written. Its id is empty where it has none. */
  readonly call?: { readonly id: string; readonly name: string; readonly input: object | string };
  readonly end: keyof typeof chatEnds;
}

/** Every mark that only its own provider may read begins so. */
export const MARK = 'MARK-';

const argumentsOf = ({ input }: NonNullable<Said['call']>) =>
  typeof input === 'string' ? input : JSON.stringify(input);

/** A wire format: the body of a reply, and the events of a streamed one. */
export interface Wire {
  body(said: Said): object;
  events(said: Said): readonly object[];
}

const stopReasons = {
  ...{ stop: 'end_turn', calls: 'tool_use', length: 'max_tokens', refused: 'refusal' },
  ...{
    other: 'new_reason',
    failed: 'new_reason',
    paused: 'pause_turn',
    malformed: 'new_reason',
    unexpected: 'new_reason',
  },
} as const;
const messageOf = (said: Said) => ({
  ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', stop_sequence: null },
  stop_reason: stopReasons[said.end],
  content: [
    ...(said.thought === undefined
      ? []
      : [{ type: 'thinking', thinking: said.thought, signature: `${MARK}anthropic` }]),
    ...(said.text === undefined ? [] : [{ type: 'text', text: said.text }]),
    ...(said.call ? [{ type: 'tool_use', ...said.call }] : []),
  ],
  usage: { input_tokens: 1, output_tokens: 1 },
});
export const anthropic: Wire = {
  body: messageOf,
  events: (said) => {
    const { content, stop_reason, usage, ...rest } = messageOf(said);
    const blocks = (content as readonly Record<string, unknown>[]).flatMap((block, index) => {
      const { type, text, thinking } = block;
      const empty = { text: { text: '' }, thinking: { thinking: '', signature: '' }, tool_use: { input: {} } };
      const deltas = {
        text: [{ type: 'text_delta', text }],
        thinking: [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature: block.signature },
        ],
        tool_use: [{ type: 'input_json_delta', partial_json: said.call && argumentsOf(said.call) }],
      };
      const kind = type as keyof typeof empty;
      return [
        { type: 'content_block_start', index, content_block: { ...block, ...empty[kind] } },
        ...deltas[kind].map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ];
    });
    return [
      { type: 'message_start', message: { ...rest, stop_reason: null, content: [], usage } },
      ...blocks,
      { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ];
  },
};

const chatEnds = {
  ...{ stop: 'stop', calls: 'tool_calls', length: 'length', refused: 'content_filter' },
  ...{ other: 'new_reason', failed: 'error', paused: 'pause', malformed: 'new_reason', unexpected: 'new_reason' },
} as const;
const chatMessage = ({ text, thought, call }: Said) => ({
  role: 'assistant',
  content: text ?? '',
  ...(thought === undefined ? {} : { reasoning_content: thought }),
  ...(call === undefined
    ? {}
    : {
        tool_calls: [
          {
            index: 0,
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: argumentsOf(call) },
          },
        ],
      }),
});
export const chat: Wire = {
  body: (said) => ({
    id: 'm',
    choices: [{ index: 0, message: chatMessage(said), finish_reason: chatEnds[said.end] }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }),
  events: (said) => chatEvents(said, chatMessage(said)),
};

const chatChunk = (delta: object, finish_reason: string | null) => ({
  ...{ id: 'm', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] },
});
const chatEvents = (said: Said, delta: object) => [
  chatChunk({ role: 'assistant', content: '' }, null),
  chatChunk(delta, null),
  { ...chatChunk({}, chatEnds[said.end]), usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } },
];
/** Mistral writes thoughts as parts of the content, and has ids of nine letters or digits. */
const mistralMessage = ({ thought, text, ...said }: Said) => ({
  ...chatMessage(said),
  content: [
    ...(thought === undefined ? [] : [{ type: 'thinking', thinking: [{ type: 'text', text: thought }] }]),
    ...(text === undefined ? [] : [{ type: 'text', text }]),
  ],
});
export const mistral: Wire = {
  body: (said) => ({
    ...chat.body(said),
    ...{ created: 1, model: 'm', object: 'chat.completion' },
    choices: [{ index: 0, message: mistralMessage(said), finish_reason: chatEnds[said.end] }],
  }),
  events: (said) => chatEvents(said, mistralMessage(said)),
};

const unified = {
  ...{ stop: 'stop', calls: 'tool-calls', length: 'length', refused: 'content-filter' },
  ...{ other: 'other', failed: 'error', paused: 'other', malformed: 'error', unexpected: 'other' },
} as const;
const finishOf = ({ end }: Said) => ({
  finishReason: { unified: unified[end], raw: chatEnds[end] },
  usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
});
const callOf = ({ call }: Said) =>
  call ? [{ type: 'tool-call', toolCallId: call.id, toolName: call.name, input: argumentsOf(call) }] : [];
const signed = { providerMetadata: { anthropic: { signature: `${MARK}gateway` } } };
export const gateway: Wire = {
  body: (said) => ({
    content: [
      ...(said.thought === undefined ? [] : [{ type: 'reasoning', text: said.thought, ...signed }]),
      ...(said.text === undefined ? [] : [{ type: 'text', text: said.text }]),
      ...callOf(said),
    ],
    ...finishOf(said),
    warnings: [],
  }),
  events: (said) => [
    { type: 'stream-start', warnings: [] },
    ...(['reasoning', 'text'] as const).flatMap((id) => {
      const delta = id === 'text' ? said.text : said.thought;
      return delta === undefined
        ? []
        : [
            { type: `${id}-start`, id },
            { type: `${id}-delta`, id, delta },
            { type: `${id}-end`, id, ...(id === 'reasoning' ? signed : {}) },
          ];
    }),
    ...callOf(said),
    { type: 'finish', ...finishOf(said) },
  ],
};

const googleEnds = {
  ...{ stop: 'STOP', calls: 'STOP', length: 'MAX_TOKENS', refused: 'SAFETY' },
  ...{ other: 'OTHER', failed: 'OTHER', paused: 'OTHER' },
  ...{ malformed: 'MALFORMED_FUNCTION_CALL', unexpected: 'UNEXPECTED_TOOL_CALL' },
} as const;
const googleBody = (parts: readonly object[], end: Said['end'] | undefined) => ({
  candidates: [{ content: { role: 'model', parts }, ...(end === undefined ? {} : { finishReason: googleEnds[end] }) }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
});
const googleParts = ({ text, thought, call }: Said) => [
  ...(thought === undefined ? [] : [{ text: thought, thought: true }]),
  ...(text === undefined ? [] : [{ text }]),
  ...(call
    ? [
        {
          functionCall: { id: call.id || undefined, name: call.name, args: call.input },
          thoughtSignature: `${MARK}google`,
        },
      ]
    : []),
];
/** `generateContent` and `streamGenerateContent` of Gemini. */
export const google: Wire = {
  body: (said) => googleBody(googleParts(said), said.end),
  events: (said) => [
    googleBody([], undefined),
    googleBody(googleParts(said), undefined),
    googleBody([], undefined),
    googleBody([], said.end),
  ],
};

const incomplete: { readonly [end in Said['end']]?: string } = {
  ...{ length: 'max_output_tokens', refused: 'content_filter', other: 'new_reason' },
};
const usage = { input_tokens: 1, output_tokens: 1 };
const reasoning = { type: 'reasoning', id: `${MARK}rs` };
const message = { type: 'message', id: `${MARK}msg`, role: 'assistant' };
/** The items of a response, each with the events between its beginning and its end. */
const itemsOf = ({ text, thought, call }: Said) => [
  ...(thought === undefined
    ? []
    : [
        {
          item: { ...reasoning, summary: [{ type: 'summary_text', text: thought }], encrypted_content: `${MARK}e` },
          begun: { ...reasoning, summary: [] },
          deltas: [
            { type: 'response.reasoning_summary_part.added', item_id: reasoning.id, summary_index: 0 },
            { type: 'response.reasoning_summary_text.delta', item_id: reasoning.id, summary_index: 0, delta: thought },
          ],
        },
      ]),
  ...(text === undefined
    ? []
    : [
        {
          item: {
            ...message,
            content: [{ type: 'output_text', text, annotations: [] }],
          },
          begun: { ...message, content: [] },
          deltas: [{ type: 'response.output_text.delta', item_id: message.id, content_index: 0, delta: text }],
        },
      ]),
  ...(call
    ? [
        {
          item: { ...functionCall(call), arguments: argumentsOf(call), status: 'completed' },
          begun: { ...functionCall(call), arguments: '' },
          deltas: [{ type: 'response.function_call_arguments.delta', item_id: `${MARK}fc`, delta: argumentsOf(call) }],
        },
      ]
    : []),
];
const functionCall = ({ id, name }: NonNullable<Said['call']>) => ({
  type: 'function_call',
  id: `${MARK}fc`,
  call_id: id,
  name,
});
/** The Responses API of OpenAI. */
export const responses: Wire = {
  body: (said) => ({
    ...{ id: `${MARK}resp`, created_at: 1, model: 'm', usage, output: itemsOf(said).map(({ item }) => item) },
    ...(incomplete[said.end] ? { incomplete_details: { reason: incomplete[said.end] } } : {}),
  }),
  events: (said) => {
    const reason = incomplete[said.end];
    const response = { id: `${MARK}resp`, created_at: 1, model: 'm' };
    const end = reason ? { incomplete_details: { reason } } : {};
    return [
      { type: 'response.created', response },
      ...itemsOf(said).flatMap(({ item, begun, deltas }, output_index) => [
        { type: 'response.output_item.added', output_index, item: begun },
        ...deltas.map((delta) => ({ ...delta, output_index })),
        { type: 'response.output_item.done', output_index, item },
      ]),
      { type: reason ? 'response.incomplete' : 'response.completed', response: { ...response, ...end, usage } },
    ];
  },
};
