import { torture } from '../crash/random.ts';
import { agentPorts } from './agent-ports.ts';
import { callbackPorts } from './callback-ports.ts';
import { type Failure, failures } from './failures.ts';
import { modelPorts } from './model-ports.ts';
import type { Port } from './scene.ts';
import { storagePorts } from './store-ports.ts';
import { supervisionPorts } from './supervision-ports.ts';
import { toolPorts } from './tool-ports.ts';

export interface Row {
  readonly port: Port;
  readonly failure: Failure;
  /** Started by the executor, or invoked by a host's own machine. */
  readonly mode: 'start' | 'hosted';
}

export const groups: Readonly<Record<string, readonly Port[]>> = {
  models: modelPorts,
  tools: toolPorts,
  storage: storagePorts,
  callbacks: callbackPorts,
  supervision: supervisionPorts,
  agents: agentPorts,
};

/** By default one of so many failures of a port is played in a host's machine: each port is, and each failure in some of them. */
const HOSTED_EVERY = torture > 1 ? 1 : 4;

/** The rows of groups, whose names a comma separates. */
export function rowsOf(names: string): readonly Row[] {
  return names.split(',').flatMap(rowsOfGroup);
}

function rowsOfGroup(group: string): readonly Row[] {
  return (groups[group] ?? []).flatMap((port, place) => {
    const known = port.failures ?? failures;
    const first = place % Math.min(known.length, HOSTED_EVERY);
    return known.flatMap((failure, i): Row[] => {
      const started: Row = { port, failure, mode: 'start' };
      const isHosted = !port.isStartOnly && i % HOSTED_EVERY === first;
      return isHosted ? [started, { ...started, mode: 'hosted' }] : [started];
    });
  });
}
