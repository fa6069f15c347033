import type { Model, Models } from '../../src/model/port.ts';
import { modelsFor } from '../../src/model/tier.ts';

/** The first model of a tier. */
export const modelFor = (models: Models, tier: string): Model => modelsFor(models, tier)[0]?.model as Model;
