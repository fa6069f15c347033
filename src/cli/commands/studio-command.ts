import { statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { toNodeListener } from '../../http/node-listener.ts';
import { type Codec, createExecutor, type Executor } from '../../index.ts';
import { studioHandler } from '../../studio/index.ts';
import type { CliCommand, CommandContext } from '../command.ts';
import { type AgentModule, knownBy, loadAgentModule } from '../open/agent-module.ts';
import { auditOption } from '../open/control-executor.ts';
import { codecFromEnvironment, codecIn, type RunStore } from '../open/open-store.ts';
import { commandToResume } from '../open/way-to-resume.ts';
import { portOf } from '../option-values.ts';
import { type Opening, openPage } from '../studio/open-page.ts';
import { listenHere } from '../studio/server.ts';
import { openStudioStore } from '../studio/studio-store.ts';
import { hasToken, studioToken } from '../studio/token.ts';
import { grantOf, guardStudio, hostsAt } from '../studio/walls.ts';
import { exitCodes, Failure, lineOf, oneLine } from '../ui/failure.ts';
import type { Output } from '../ui/output.ts';
import { watchParent } from '../ui/parent-watch.ts';
import { PAWL } from '../ui/shell-words.ts';
import { loggerOf } from '../ui/warnings.ts';

const USUAL_PORT = 4747;

/** Runs `pawl studio`: serves a page on a store until it is stopped. */
export const studioCommand: CliCommand = async (context) => {
  const { args, output } = context;
  const port = portOf(args.port, USUAL_PORT);
  const apply = args.apply === undefined ? undefined : folderOf(args.apply);
  const module = args.agent === undefined ? undefined : await loadAgentModule(args.agent, { asksModels: false });
  const store = await openStudioStore(args.store, { codec: await codecFor(args.codec, module), write: args.write });
  const token = studioToken(store.identity, { isNew: args.newToken });
  const executor = await executorOn(store, { context, module });
  const stopped = untilStopped();
  const watching = watchParent(output);
  const server = await listenHere(port, (found) => {
    const handler = studioHandler(executor, {
      authorize: (request) => (hasToken(request, token) ? grantOf(userName()) : null),
      hosts: hostsAt(found),
      place: store.path,
      write: args.write,
      resume: commandToResume(store, args.agent),
      fanOuts: resolve(args.fanOuts ?? '.pawl'),
      ...(module && !module.workflow ? { agents: { [module.agent.id]: module.agent }, tools: module.tools } : {}),
      ...(apply === undefined ? {} : { apply: { root: apply } }),
      logger: loggerOf(output),
    });
    return toNodeListener(guardStudio(handler));
  });
  const url = `http://127.0.0.1:${server.port}/#token=${token}`;
  const facts = { url, port: server.port, store: store.path, write: args.write, apply: apply ?? null };
  if (args.json) output.printJson(facts);
  else await introduce(context, { ...facts, store, taken: server.isMoved ? port : undefined });
  const opening = args.open ? opened(output, url) : undefined;
  await stopped;
  watching[Symbol.dispose]();
  opening?.end();
  await server.close();
  await executor.shutdown();
  await store.close().catch(() => {});
  if (!args.json) output.say('pawl: Studio has stopped; the runs are as they were');
  return exitCodes.ok;
};

async function codecFor(option: string | undefined, module: AgentModule | undefined): Promise<Codec | undefined> {
  return option === undefined ? (module?.codec ?? (await codecFromEnvironment())) : codecIn(option, '--codec');
}

/** The folder of `--apply`. @throws {Failure} if there is none */
function folderOf(option: string): string {
  const path = resolve(option);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path;
  throw new Failure(`--apply ${path} is not a folder; name the folder whose files may be changed`);
}

/** It runs nothing: it needs no model, and its agents only say what they are. */
async function executorOn(
  store: RunStore,
  { context, module }: { readonly context: CommandContext; readonly module: AgentModule | undefined },
): Promise<Executor> {
  return createExecutor({
    models: () => undefined,
    store,
    journal: true,
    ...(module ? { ...knownBy(module), tools: [...module.tools] } : {}),
    ...auditOption(context.args),
    logger: loggerOf(context.output),
  });
}

/** The name of this user's account; `local` where the system has none. */
function userName(): string {
  try {
    return userInfo().username || 'local';
  } catch {
    return 'local';
  }
}

interface Introduced {
  readonly url: string;
  readonly port: number;
  readonly store: RunStore;
  readonly write: boolean;
  readonly apply: string | null;
  /** The port that was asked for, if another program has it. */
  readonly taken: number | undefined;
}

/** Says where it is, what it may do, and how it ends. */
async function introduce({ output }: CommandContext, facts: Introduced): Promise<void> {
  const { url, port, store, write, apply, taken } = facts;
  if (taken !== undefined) output.say(`port ${taken} is taken; Studio is at port ${port}`);
  output.print(`Studio of ${store.path}: ${url}`);
  const may = [...(write ? [`answer, steer, cancel and park runs as ${userName()}`] : [])];
  if (apply !== null) may.push(`apply changes of fan-outs below ${apply}`);
  output.say(may.length === 0 ? 'It only reads; --write allows to answer and steer.' : `It may ${may.join(', and ')}.`);
  if (write)
    output.say(`A run that is answered continues in the program that works on it, or with \`${PAWL} resume\`.`);
  const trouble = await troubleOf(store);
  if (trouble !== undefined)
    output.say(`The store cannot be read now: ${trouble}. Studio shows it when it can be read.`);
  output.say('Only this machine and this user can open it: keep the address to yourself. Ctrl-C stops it.');
}

async function troubleOf(store: RunStore): Promise<string | undefined> {
  try {
    await store.listInterrupted({ limit: 1 });
    return undefined;
  } catch (error) {
    return lineOf(error);
  }
}

function opened(output: Output, url: string): Opening | undefined {
  const complain = (why: string) => output.say(oneLine(`pawl: no browser could be opened (${why}); open the address`));
  try {
    const opening = openPage(url);
    void opening.failed.then((why) => why === undefined || complain(why));
    return opening;
  } catch (error) {
    complain(lineOf(error));
    return undefined;
  }
}

/** Resolves at Ctrl-C, and at the other signals that end a process. A second one ends it at once. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}
