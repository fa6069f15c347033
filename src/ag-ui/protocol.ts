import type { Event, EventType, Message } from '@ag-ui/core';

/** A type whose enum `type` is written as its text: the enum is a run-time value of another package. */
type Spelled<E> = E extends { readonly type: EventType } ? Omit<E, 'type'> & { readonly type: `${E['type']}` } : never;

/** An event of the protocol, version 1.0, as JSON. */
export type AgUiEvent = Spelled<Event>;
/** A message of the protocol, as JSON. */
export type AgUiMessage = Message;
/** One kind of event. */
export type AgUiEventOf<Type extends AgUiEvent['type']> = Extract<AgUiEvent, { readonly type: Type }>;

/** The version of the protocol that these events have. */
export const PROTOCOL = '1.0';
