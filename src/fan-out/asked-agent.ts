import { fileTools } from '../edits/file-tools.ts';
import { type Agent, defineAgent } from '../index.ts';
import type { ModelWatch } from './model-watch.ts';
import { checkTools, type FanOutOptions } from './options.ts';

const WORK_ON_FILES =
  'You work on the files of a folder. Look at them with list_files and read_file. What you write or delete is queued: it ' +
  'is applied when your answer is chosen. Say in your answer what you have changed, and why.';

/** A model of a fan-out as an agent: its own view of the files, and what all of them get. @throws {TypeError} for wrong tools */
export function agentOf({ modelId, overlay }: ModelWatch, options: FanOutOptions): Agent {
  const { instructions, maxIterations } = options;
  const tools = [...(options.tools ?? []), ...(overlay ? fileTools(overlay) : [])];
  checkTools(tools);
  return defineAgent({
    id: modelId,
    modelTier: modelId,
    instructions: instructions ?? (overlay ? WORK_ON_FILES : ''),
    tools,
    ...(maxIterations === undefined ? {} : { maxIterations }),
    // How long a model may take is this call's matter: its record must not be failed for that.
    maxRuntimeMs: Number.MAX_SAFE_INTEGER,
  });
}
