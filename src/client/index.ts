export type { PublicError } from '../http/problem.ts';
export type { RunLine, RunState } from '../http/runs/run-line.ts';
export type { RunEndView, RunView } from '../http/runs/run-view.ts';
export type { JournalEvent } from '../run/journal/reader.ts';
export type { ChatRequest, ChatSendRequest, ChatTransportOptions, PawlChatTransport } from './chat-transport.ts';
export {
  type Client,
  createClient,
  type RunFilter,
  type RunToStart,
  type StartedRun,
  type WaitFilter,
} from './client.ts';
export { type ClientHeaders, type ClientOptions, newId, type Page } from './connection.ts';
export { ClientError, type ClientErrorFacts } from './error.ts';
export type { ConnectionState } from './follow.ts';
export type { ApproveAnswer, ClientRun, FollowEventsOptions } from './run.ts';
export type { ClientThread, MessagesPage, ThreadMessageFacts, ThreadMessageToSend, ThreadView } from './thread.ts';
