import type { Agent, Model } from 'pawl';

export function survey(_folder: string): { agent: Agent; model: Model; prompt: string } {
  throw new Error('later');
}
