// For workerd: the Worker of docs/deploy over a store in memory. A request admits a run, has the cron called as the platform does, and says
// how the run ended.
import { createExecutor, defineAgent, memoryStore } from 'pawl';
import { reply, scriptedModel } from 'pawl/testing';
import { workerOf } from '../../docs/deploy/functions/cloudflare.ts';

interface Environment {
  readonly SELF: { scheduled(options: { readonly cron: string }): Promise<{ readonly outcome: string }> };
}

const agent = defineAgent({ id: 'desk', instructions: 'Answer.' });
const store = memoryStore();
const open = () => ({
  executor: createExecutor({ models: { fast: scriptedModel([reply('done')]) }, agents: [agent], store }),
  close: async () => {},
});

export default {
  ...workerOf<Environment>(open),
  async fetch(_request: Request, { SELF }: Environment): Promise<Response> {
    const { executor } = open();
    await executor.start(agent, { runId: 'r', prompt: 'Go.' }, { drive: 'later' });
    const before = (await executor.find('r'))?.status;
    const { outcome } = await SELF.scheduled({ cron: '* * * * *' });
    const found = await executor.find('r');
    await executor.shutdown();
    return Response.json({
      before,
      cron: outcome,
      output: found?.status === 'ended' ? found.outcome.output : undefined,
    });
  },
};
