import { type AgentSubscriber, HttpAgent, type Message, type ResumeEntry } from '@ag-ui/client';
import { defineTool, memoryStore, type Tool } from 'pawl';
import { type AgUiHandlerOptions, agUiHandler } from 'pawl/ag-ui';
import { afterEach } from 'vitest';
import { type HostOptions, hostOf } from '../fixtures/host.ts';
import { byToken } from '../http/web-host.ts';

const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0)) await leave();
});

/** A tool that needs an approval, and notes what it sent. */
export function mailTool(sent: unknown[]): Tool {
  return defineTool({
    ...{
      name: 'mail',
      description: 'Sends a mail.',
      effect: 'once',
      needsApproval: true,
      approval: { editable: true },
    },
    input: { type: 'object', properties: { to: { type: 'string' } } },
    execute: (input) => {
      sent.push(input);
      return `sent to ${String((input as { to?: string }).to)}`;
    },
  }) as unknown as Tool;
}

export type AgUiHostOptions = HostOptions & { readonly agUi?: Partial<AgUiHandlerOptions> };

/** A host with a journal and a handler of AG-UI. */
export function agUiHost({ agUi = {}, ...options }: AgUiHostOptions = {}) {
  const host = hostOf({ store: memoryStore(), journal: { flushMs: 1 }, ...options });
  left.push(() => host.executor.shutdown());
  const warnings: string[] = [];
  const handler = agUiHandler(host.executor, {
    agents: { worker: host.agent },
    authorize: byToken,
    logger: { warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields)}`) },
    ...agUi,
  });
  return { ...host, handler, warnings };
}

/** A page with the real client of one conversation. */
export class Page {
  readonly agent: HttpAgent;
  /** The events of the last post, as text. */
  types: string[] = [];
  #handler: (request: Request) => Promise<Response>;

  constructor(handler: (request: Request) => Promise<Response>, { threadId = 't', as = 'ada' } = {}) {
    this.#handler = handler;
    this.agent = new HttpAgent({
      url: 'http://pawl.test/',
      threadId,
      headers: { authorization: `Bearer ${as}` },
      fetch: (url, init) => this.#handler(new Request(url, init)),
    });
  }

  /** Another server takes over. */
  use(handler: (request: Request) => Promise<Response>): void {
    this.#handler = handler;
  }

  /** Posts a message, an answer, or nothing new. */
  async post(
    text?: string,
    resume?: readonly ResumeEntry[],
    subscriber: AgentSubscriber = {},
  ): Promise<readonly Message[]> {
    this.types = [];
    if (text !== undefined)
      this.agent.addMessage({ id: `m${this.agent.messages.length}`, role: 'user', content: text });
    const note: AgentSubscriber = {
      ...subscriber,
      onEvent: (at) => {
        this.types.push(at.event.type);
        return subscriber.onEvent?.(at);
      },
    };
    await this.agent.runAgent(
      { runId: `run-${this.agent.messages.length}`, ...(resume ? { resume: [...resume] } : {}) },
      note,
    );
    return this.agent.messages;
  }

  /** Answers each open interrupt alike. */
  answer(payload: unknown): Promise<readonly Message[]> {
    const resume = this.agent.pendingInterrupts.map(
      ({ id }): ResumeEntry =>
        payload === undefined
          ? { interruptId: id, status: 'cancelled' }
          : { interruptId: id, status: 'resolved', payload },
    );
    return this.post(undefined, resume);
  }
}

/** Who said what. */
export const said = (messages: readonly Message[]) =>
  messages.map(({ role, content, ...rest }) =>
    'toolCalls' in rest && rest.toolCalls ? `${role} calls` : `${role}: ${String(content)}`,
  );
