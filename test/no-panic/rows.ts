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

export function rowsOf(group: string): readonly Row[] {
  return (groups[group] ?? []).flatMap((port) =>
    (port.failures ?? failures).flatMap((failure): Row[] => {
      const started: Row = { port, failure, mode: 'start' };
      return port.isStartOnly ? [started] : [started, { ...started, mode: 'hosted' }];
    }),
  );
}
