import { describe, expect, test } from 'vitest';
import { withoutFence } from '../../src/values/texts/model-text.ts';

describe('an answer in a code fence', () => {
  test.for([
    ['a fence with a language', '```json\n{"n":1}\n```', '{"n":1}'],
    ['a fence without one', '```\n{"n":1}\n```', '{"n":1}'],
    ['spaces around it', '\n  ```json\n{\n  "n": 1\n}\n```  \n', '{\n  "n": 1\n}'],
    ['an object beside the fence', '```json {"n":1} ```', '{"n":1}'],
    ['a list that touches the fence', '```[1]```', '[1]'],
    ['indentation, which is kept', '```\n\n  a\n  b\n\n```', '  a\n  b\n'],
    ['no content', '```\n```', ''],
  ])('with %s is what stands inside', ([, answer, content]) => expect(withoutFence(answer as string)).toBe(content));

  test.for([
    ['it has no fence', ' {"n":1} '],
    ['the fence does not close', '```json\n{"n":1}'],
    ['one fence is both ends', '```'],
    ['five backticks are both ends', '`````'],
    ['there is prose around it', 'Here: ```json\n{"n":1}\n```'],
    ['the fence is of another language', '```python\nprint(1)\n```'],
    ['it is a word in a fence on one line', '```code```'],
    ['it is empty', ''],
  ])('stays as it is when %s', ([, answer]) => expect(withoutFence(answer as string)).toBe(answer));
});
