import { randomUUID } from 'node:crypto';
import type { Command } from '../command.ts';
import { type AgentModule, loadAgentModule } from '../open/agent-module.ts';
import { openStore } from '../open/open-store.ts';
import { findWaiting } from '../open/stored-runs.ts';
import { Failure } from '../ui/failure.ts';
import { PAWL } from '../ui/shell-words.ts';
import { Session } from './session.ts';

/** Runs `pawl run`: one run of an agent, from its prompt to its answer. */
export const runCommand: Command = async (context) => {
  const { words, runId, store: storeOption } = context.args;
  const [file, prompt] = words;
  if (file === undefined) throw new Failure(`\`pawl run\` needs an agent module: ${PAWL} run <agent module> [prompt]`);
  if (runId === '') throw new Failure('--run-id is empty; leave it out, or give the run a name');
  const module = await loadAgentModule(file);
  const invocation = {
    prompt: promptFor(module, prompt),
    runId: runId ?? randomUUID(),
    // For tools: the folder for relative paths in the prompt, also when another process resumes the run.
    inputs: { cwd: process.cwd() },
  };
  const store = await openStore(storeOption, module.codec);
  const isResumed = runId !== undefined && (await findWaiting(store, runId)) !== undefined;
  const session = new Session(context, store);
  const exitCode = await session.carry({ module, work: invocation, isResumed, mayAsk: true });
  await session.close();
  return exitCode;
};

function promptFor(module: AgentModule, given: string | undefined): string {
  const prompt = given ?? module.prompt;
  if (prompt === undefined) {
    throw new Failure(
      `there is no prompt; add one (${PAWL} run <agent module> "…"), or export \`prompt\` from ${module.path}`,
    );
  }
  if (prompt.trim() === '') throw new Failure('the prompt is empty; say what the agent should do');
  return prompt;
}
