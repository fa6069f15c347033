import type { Model } from 'pawl';

/** A model that keeps each run in the middle of its work: after the first step it never answers. */
export function heldModel(model: Model): Model {
  return {
    ...model,
    // The instructions, the prompt, and two messages of each step.
    doStream: (options) => (options.prompt.length > 2 ? new Promise(() => {}) : model.doStream(options)),
  };
}
