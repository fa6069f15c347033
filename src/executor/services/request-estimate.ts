import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import type { Transcript } from '../../run/transcript.ts';
import type { Message } from '../../values/message.ts';
import { estimateTokens } from '../../values/texts/token-estimate.ts';
import type { Config } from '../host/config.ts';

/** The size of one request. */
interface SentRequest {
  readonly system: string;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly transcript: Transcript;
  /** The messages that replaced the whole transcript in the request; undefined = none. */
  readonly shortened: readonly Message[] | undefined;
}

const CHARACTERS_PER_TOKEN = 4;

/** Estimates the tokens of one loop's model requests. Messages of the previous request are not counted again. */
export class RequestEstimate {
  #counted: Transcript | undefined;
  #tokens = 0;
  #toolTokens: number | undefined;

  of({ system, tools, transcript, shortened }: SentRequest): number {
    this.#toolTokens ??= tools.length === 0 ? 0 : JSON.stringify(tools).length / CHARACTERS_PER_TOKEN;
    const messages = shortened ? estimateTokens(shortened) : this.#messageTokens(transcript);
    return Math.ceil(messages + this.#toolTokens + system.length / CHARACTERS_PER_TOKEN);
  }

  #messageTokens(transcript: Transcript): number {
    const isLonger = this.#counted !== undefined && transcript.continues(this.#counted);
    this.#tokens =
      (isLonger ? this.#tokens : 0) + estimateTokens(transcript.slice(isLonger ? this.#counted?.length : 0));
    this.#counted = transcript;
    return this.#tokens;
  }
}

/** Warns, once for each executor, that a model reports no usage and its budget counts an estimate. */
export function warnOfEstimate(
  services: { readonly config: Config; hasWarnedOfEstimate: boolean },
  fields: { readonly runId: string; readonly model: string },
): void {
  if (services.hasWarnedOfEstimate) return;
  services.hasWarnedOfEstimate = true;
  services.config.warn('budget.estimated', fields);
}
