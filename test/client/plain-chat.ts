import { AbstractChat, type ChatState, type ChatTransport, type UIMessage } from 'ai';

/** `useChat` without React: the hook adds nothing to how a stream is read. */
export class PlainChat extends AbstractChat<UIMessage> {
  readonly finished: { readonly isError: boolean; readonly isAbort: boolean }[] = [];

  constructor(transport: ChatTransport<UIMessage>, messages: UIMessage[] = []) {
    const state: ChatState<UIMessage> = {
      status: 'ready',
      error: undefined,
      messages: structuredClone(messages),
      pushMessage: (message) => void state.messages.push(structuredClone(message)),
      popMessage: () => void state.messages.pop(),
      replaceMessage: (index, message) => void state.messages.splice(index, 1, structuredClone(message)),
      snapshot: (thing) => structuredClone(thing),
    };
    let id = 0;
    const generateId = () => `made-${++id}`;
    super({ id: 'c', state, transport, generateId, onFinish: (end) => void this.finished.push(end) });
  }
}
