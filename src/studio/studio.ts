import type { Served } from '../http/route.ts';
import { type WebOptions, webOf } from '../http/web.ts';
import type { Agent, Executor, Tool } from '../index.ts';
import { isObject } from '../values/json.ts';
import { type KnownKeys, kindOf } from '../values/known-options.ts';

/** The options of `studioHandler`. */
export interface StudioOptions extends WebOptions {
  /** The name of this Studio, at the top of the page; default `Pawl Studio`. */
  readonly title?: string;
  /** Where the records are, as a person would name it; shown on the page. Never a URL with a password. */
  readonly place?: string;
  /** The agents of the runs, by their ids: with them Studio knows their step limits, phases and the schemas of their tools. */
  readonly agents?: { readonly [id: string]: Agent };
  /** The registered tools that these agents name: with their schemas Studio makes the form of an edited input. */
  readonly tools?: readonly Tool[];
  /** Whether persons may answer, steer, cancel and park runs here; default false: then no route writes. */
  readonly write?: boolean;
  /** Allows to apply the proposed file changes of fan-outs below one folder. Absent: nothing is applied. */
  readonly apply?: { readonly root: string };
  /**
   * The command with which a person continues a run that no process holds, by the run's id; undefined if there is none. Shown
   * beside the run, and once it is answered. Absent: that a process with its agent continues it.
   */
  readonly resume?: (runId: string) => string | undefined;
  /** The folder in which fan-outs are looked for; default `.pawl`. */
  readonly fanOuts?: string;
}

/** All that Studio's routes work with. */
export interface Studio extends Required<Pick<StudioOptions, 'title' | 'place' | 'tools' | 'write' | 'fanOuts'>> {
  readonly served: Served;
  readonly apply: StudioOptions['apply'];
  readonly resume: StudioOptions['resume'];
}

const ownKeys: Omit<KnownKeys<StudioOptions>, keyof WebOptions> = {
  title: true,
  place: true,
  agents: true,
  tools: true,
  write: true,
  apply: true,
  resume: true,
  fanOuts: true,
};

/** Checks the options of `studioHandler`. @throws {TypeError} */
export function studioOf(executor: Executor, options: StudioOptions): Studio {
  const web = webOf(options, 'studioHandler', ownKeys);
  if (typeof executor?.find !== 'function') throw new TypeError('studioHandler needs an executor, from createExecutor');
  const {
    agents = {},
    tools = [],
    title = 'Pawl Studio',
    place = '',
    write = false,
    fanOuts = '.pawl',
    apply,
    resume,
  } = options;
  if (!isObject(agents))
    throw new TypeError(`studioHandler: agents must be an object of agents, not ${kindOf(agents)}`);
  if (!Array.isArray(tools))
    throw new TypeError(`studioHandler: tools must be an array of tools, not ${kindOf(tools)}`);
  if (resume !== undefined && typeof resume !== 'function')
    throw new TypeError(`studioHandler: resume must be a function, not ${kindOf(resume)}`);
  const served: Served = { executor, web, onWaiting: 'queue', agents: new Map(Object.entries(agents)) };
  return { served, title, place, tools, write, fanOuts, apply, resume };
}
