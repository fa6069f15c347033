import { fanOutMachine } from '../../machines/fan-out.ts';
import { runMachine } from '../../machines/run.ts';
import { runChart } from '../pictures/run-chart.ts';

/** The parts of an XState state node that a page about the chart needs. */
interface ChartNode {
  readonly key: string;
  readonly path: readonly string[];
  readonly type: string;
  readonly description?: string;
  readonly meta?: { readonly resumesAt?: 'here' };
  readonly parent?: ChartNode;
  readonly states: Readonly<Record<string, ChartNode>>;
  readonly initial: { readonly target: readonly ChartNode[] };
  readonly always?: readonly ChartTransition[];
  readonly transitions: ReadonlyMap<string, readonly ChartTransition[]>;
}

interface ChartTransition {
  readonly eventType: string;
  readonly target?: readonly ChartNode[];
  readonly guard?: unknown;
}

/** The page about a run's life: a diagram and a table, both read off the machine itself. */
export function lifecyclePage(): string {
  const root = runMachine({ id: 'any' }).root as unknown as ChartNode;
  const fanOut = fanOutMachine([{ id: 'a model' }]).root as unknown as ChartNode;
  return [
    '# The life of a run',
    '',
    'A run is an XState actor of the machine in `machines/run.ts`; its `running` is the loop of `machines/loop.ts`. This page is',
    'made from their descriptions by `npm run docs`, and a test fails when it is out of date.',
    '',
    `![${runChart().description}](pictures/run-chart.svg)`,
    '',
    '| state | what happens there |',
    '| --- | --- |',
    ...table(root),
    '',
    'A restarted process continues at a state marked ↺: everything before it is in the record.',
    '',
    '## The life of a pipeline',
    '',
    'An agent with phases has a state for each instead of `running`: the same loop, with a conversation of its own. Here for',
    'an agent with the phases `survey` and `report`:',
    '',
    '```mermaid',
    'stateDiagram-v2',
    ...pipelineDiagram(),
    '```',
    '',
    '## What stops a run',
    '',
    '`run.cancel` comes from `run.cancel()` or a host machine. `run.stop` comes from the deadline, the caller’s signal, the critic, a lost',
    'lease, or a store that failed for good. Both lead from `resolving`, `running` and the phases to `ending`. So does `run.leave`',
    '(shutdown), after calls with effects that are under way have ended. The first cause decides, by the finalize matrix:',
    '',
    '| the run ended with | cause of the stop | way out | record |',
    '| --- | --- | --- | --- |',
    '| an answer | any | `completing` | is deleted |',
    '| an error | a shutdown, however wrapped | `leaving-running` | stays for the next process |',
    '| an error | cancel, deadline, kill, none | `failing` | is deleted |',
    '',
    '## The life of a fan-out',
    '',
    'One prompt for many models (`machines/fan-out.ts`) is a chart with a region for each model, side by side. The run of a model is',
    'the child of its region. Here for one model:',
    '',
    '```mermaid',
    'stateDiagram-v2',
    ...diagram(fanOut, '  '),
    '```',
    '',
    '| state | what happens there |',
    '| --- | --- |',
    ...table(fanOut),
    '',
  ].join('\n');
}

/** The phases of a pipeline and how they follow one another, without the loop inside each. */
function pipelineDiagram(): string[] {
  const phases = [{ name: 'survey' }, { name: 'report' }];
  const { states } = runMachine({ id: 'any', phases }).root as unknown as ChartNode;
  const shown = ['resolved', 'between-phases', 'phase(0)', 'phase(1)', 'ending'];
  return shown.flatMap((key) => {
    const node = states[key] as ChartNode;
    const to = [...arrows(node)].filter(([target]) => shown.map(idOf).includes(target));
    const label = key.startsWith('phase(') ? `${key} ${node.description}` : key;
    return [
      `  state "${label}" as ${idOf(key)}`,
      ...to.map(([target, labels]) => `  ${idOf(key)} --> ${target}: ${labels.join(', ')}`),
    ];
  });
}

const idOf = (key: string) => key.replaceAll(/[^A-Za-z0-9]/g, '_');
const nameOf = (node: ChartNode) => idOf(node.path.join('_'));

function diagram(parent: ChartNode, indent: string): string[] {
  const lines = parent.type === 'parallel' ? [] : [`${indent}[*] --> ${parent.initial.target.map(nameOf)[0]}`];
  for (const node of Object.values(parent.states)) {
    lines.push(`${indent}state "${node.key}" as ${nameOf(node)}`);
    if (Object.keys(node.states).length > 0) {
      lines.push(`${indent}state ${nameOf(node)} {`, ...diagram(node, `${indent}  `), `${indent}}`);
    }
  }
  for (const node of Object.values(parent.states)) {
    for (const [target, labels] of arrows(node))
      lines.push(`${indent}${nameOf(node)} --> ${target}: ${labels.join(', ')}`);
    if (node.type === 'final') lines.push(`${indent}${nameOf(node)} --> [*]`);
  }
  return lines;
}

/** Where a state leads, with the guards or events that lead there. */
function arrows(node: ChartNode): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const transition of [...(node.always ?? []), ...[...node.transitions.values()].flat()]) {
    for (const target of transition.target ?? []) {
      const labels = found.get(nameOf(target)) ?? [];
      const label = labelOf(transition);
      found.set(nameOf(target), labels.includes(label) ? labels : [...labels, label]);
    }
  }
  return found;
}

function labelOf({ guard, eventType }: ChartTransition): string {
  if (typeof guard === 'string') return guard;
  if (typeof guard === 'object' && guard !== null) return String((guard as { type: string }).type);
  if (eventType === '') return 'otherwise';
  return eventType.replace(/^xstate\.done\.(actor|state)\./, 'done ').replace(/^done run\..*/, 'done');
}

function table(parent: ChartNode): string[] {
  return Object.values(parent.states).flatMap((node) => [
    `| ${'&nbsp;&nbsp;'.repeat(node.path.length - 1)}\`${node.key}\`${node.meta?.resumesAt ? ' ↺' : ''} | ${node.description ?? ''} |`,
    ...table(node),
  ]);
}
