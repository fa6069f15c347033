import type { RunExplanation, StateOutline } from '../../index.ts';
import { sha256 } from '../../values/digest.ts';
import { drawingOf } from '../machine/drawing.ts';
import type { MachineDrawing } from '../machine/wire.ts';
import type { RecordView } from '../wire.ts';

/** Most timers, and most calls, of a workflow that are sent. */
const SHOWN_PARTS = 200;

const marks = new WeakMap<StateOutline, string>();

/** Names a machine: another one has another name. */
function markOf(machine: StateOutline): string {
  const mark = marks.get(machine) ?? sha256(JSON.stringify(machine)).slice(0, 16);
  marks.set(machine, mark);
  return mark;
}

/** Returns what a record's answer has of the machine of a workflow. Its drawing is an answer of its own: it stays the same. */
export function machineView({ workflow }: RunExplanation): Pick<RecordView, 'workflow'> {
  if (!workflow) return {};
  // What the machine says in `meta` may be no JSON.
  const { meta: _, machine, timers, calls, ...rest } = workflow;
  return {
    workflow: {
      ...rest,
      timers: timers.slice(0, SHOWN_PARTS),
      calls: calls.slice(0, SHOWN_PARTS),
      ...(machine ? { chart: markOf(machine) } : {}),
    },
  };
}

/** Returns the drawing of a workflow's machine; without states for one that is not known here, and for a run of an agent. */
export function machineDrawing({ workflow }: RunExplanation): MachineDrawing {
  const none = { width: 0, height: 0, states: [], arrows: [], dots: [] };
  return workflow?.machine ? drawingOf(workflow.machine) : none;
}
