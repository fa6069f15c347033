export type { Action, Authorize, AuthorizeDetails, Grant } from '../http/authorize.ts';
export type { WebHandler } from '../http/node-listener.ts';
export type { WebOptions } from '../http/web.ts';
export { studioHandler } from './handler.ts';
export type { StudioOptions } from './studio.ts';
