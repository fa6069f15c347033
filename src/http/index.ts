export type { Action, Authorize, AuthorizeDetails, Grant } from './authorize.ts';
export { type HttpOptions, httpHandler } from './handler.ts';
export { healthHandler } from './health.ts';
export { type LocalOptions, localOnly } from './local-only.ts';
export { type NodeRequest, type NodeResponse, toNodeListener, type WebHandler } from './node-listener.ts';
export type { Problem, PublicError } from './problem.ts';
export type { RunLine, RunState } from './runs/run-line.ts';
export type { RunEndView, RunView } from './runs/run-view.ts';
export type { WebOptions } from './web.ts';
