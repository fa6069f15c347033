export type { Action, Authorize, AuthorizeDetails, Grant } from '../http/authorize.ts';
export type { WebHandler } from '../http/node-listener.ts';
export type { WebOptions } from '../http/web.ts';
export { type AgUiHandlerOptions, agUiHandler } from './handler.ts';
