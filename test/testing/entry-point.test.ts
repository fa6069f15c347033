import * as testing from 'pawl/testing';
import { expect, test } from 'vitest';

test('the testing kit offers exactly these names', () => {
  expect(Object.keys(testing).sort()).toEqual([
    'arbitraries',
    'callTool',
    'callTools',
    'checkpointStoreContract',
    'crashTest',
    'fail',
    'freshProgress',
    'hang',
    'recordingCheckpointer',
    'recordingFactory',
    'reply',
    'runEvents',
    'scriptedModel',
    'stallAfter',
    'testClock',
    'testPaths',
  ]);
});
