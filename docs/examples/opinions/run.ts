// node docs/examples/opinions/run.ts change.diff: needs ANTHROPIC_API_KEY, and an OpenAI-compatible server such as Ollama.
import { readFileSync } from 'node:fs';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { findingsOf, review } from './opinions.ts';

const { LOCAL_URL = 'http://127.0.0.1:11434/v1', ANTHROPIC_URL } = process.env;
const anthropic = createAnthropic(ANTHROPIC_URL === undefined ? {} : { baseURL: ANTHROPIC_URL });
const local = createOpenAICompatible({ name: 'local', baseURL: LOCAL_URL });

const leave = new AbortController();
process.once('SIGINT', () => leave.abort());

const { responses, ranking, interrupted } = await review({
  diff: readFileSync(process.argv[2] ?? 'change.diff', 'utf8'),
  root: '.',
  path: '.pawl/review.json',
  reviewers: { sonnet: anthropic('claude-sonnet-4-5'), qwen: local('qwen3-coder'), mistral: local('devstral') },
  judge: anthropic('claude-haiku-4-5'),
  signal: leave.signal,
});

for (const { at, says } of findingsOf(responses)) console.log(at, says);
for (const { modelId, error, stopReason } of responses) if (error) console.error(`${modelId}: ${stopReason}: ${error}`);
if (ranking) console.log('The best review:', ranking.order[0]);
if (interrupted) console.error('Some have not answered; the same command continues them.');
