import { randomUUID } from 'node:crypto';
import type { CliCommand } from '../command.ts';
import { type AgentModule, loadAgentModule } from '../open/agent-module.ts';
import { openStore } from '../open/open-store.ts';
import { findWaiting } from '../open/stored-runs.ts';
import { Failure, oneLine } from '../ui/failure.ts';
import { PAWL } from '../ui/shell-words.ts';
import { CommandSession } from './session.ts';

/** Runs `pawl run`: one run of an agent, from its prompt to its answer. */
export const runCommand: CliCommand = async (context) => {
  const { words, runId, store: storeOption } = context.args;
  const [file, prompt] = words;
  if (file === undefined) throw new Failure(`\`pawl run\` needs an agent module: ${PAWL} run <agent module> [prompt]`);
  if (runId === '') throw new Failure('--run-id is empty; leave it out, or give the run a name');
  const module = await loadAgentModule(file);
  const invocation = { ...askedOf(module, prompt), runId: runId ?? randomUUID() };
  const store = await openStore(storeOption, module.codec);
  const isResumed = runId !== undefined && (await findWaiting(store, runId)) !== undefined;
  const session = new CommandSession(context, store);
  const exitCode = await session.carry({ module, work: invocation, isResumed, mayAsk: true });
  await session.close();
  return exitCode;
};

function askedOf(module: AgentModule, given: string | undefined) {
  if (module.workflow) return inputFor(module, given);
  // For tools: the folder for relative paths in the prompt, also when another process resumes the run.
  return { prompt: promptFor(module, given), inputs: { cwd: process.cwd() } };
}

/** A workflow has an input, as JSON. @throws {Failure} */
function inputFor({ input }: AgentModule, given: string | undefined): { readonly input?: unknown } {
  if (given === undefined) return input === undefined ? {} : { input };
  try {
    return { input: JSON.parse(given) };
  } catch {
    throw new Failure(`the input of a workflow must be JSON, not ${oneLine(given.slice(0, 100))}`);
  }
}

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
