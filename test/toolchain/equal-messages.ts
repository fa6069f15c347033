// A mark says how a model made a message. It is no part of what two runs have in common: its time differs each time.
import { expect } from 'vitest';
import { isObject } from '../../src/values/json.ts';
import type { Message } from '../../src/values/message.ts';
import { markOf, unmarked } from '../../src/values/message-mark.ts';

const isMarked = (value: unknown): value is Message =>
  isObject(value) && markOf(value as unknown as Message) !== undefined;
const bare = (value: unknown): unknown => (isMarked(value) ? unmarked(value) : value);

expect.addEqualityTesters([
  function areEqualMessages(a, b, testers) {
    return isMarked(a) || isMarked(b) ? this.equals(bare(a), bare(b), testers) : undefined;
  },
]);
