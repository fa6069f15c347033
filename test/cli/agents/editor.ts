// Has a reviewer of its own.
import { createPalette, defineAgent } from 'pawl';
import reviewer from './reviewer.ts';

export default defineAgent({ id: 'editor', instructions: 'Have it reviewed.', subAgents: ['reviewer'] });
export const ports = { palette: createPalette({ agents: [reviewer] }) };
export { models } from './reviewer.ts';
