import { type Agent, createPalette, defineAgent, type Tool } from 'pawl';
import { callTool, reply, type ScriptedStep } from 'pawl/testing';
import { answeringModel, turnsOf } from '../../fixtures/answering-model.ts';

/** What both agents do first; then each has its answer. */
interface Turns {
  readonly tools?: readonly Tool[];
  /** Default: the lead asks the helper. */
  readonly lead?: ScriptedStep;
  readonly helper: ScriptedStep;
}

/** Options of a crash test of an agent that puts another one to work. */
export function leadAndHelper(helper: Agent, { tools = [], ...first }: Turns) {
  const { lead = callTool(`agent__${helper.id}`, { prompt: 'Help.' }) } = first;
  return {
    agent: defineAgent({ id: 'lead', instructions: 'Lead.', tools, subAgents: [helper.id] }),
    prompt: 'Go.',
    model: () =>
      answeringModel((request) => {
        const isLead = request.system.startsWith('Lead.');
        if (turnsOf(request) > 0) return reply(isLead ? 'Done.' : 'Helped.');
        return isLead ? lead : first.helper;
      }),
    executor: { ports: { palette: createPalette({ agents: [helper] }) } },
  };
}
