import { amount } from './report.ts';

/** A program that runs the loop. */
export interface Peer {
  readonly name: string;
  /** In test/bench/peers. */
  readonly file: string;
  /** Its argument after the folder and the steps. */
  readonly more: string;
  /** The process whose CPU is not counted. */
  readonly aside?: string;
  /** Why it cannot be measured here. */
  readonly whyNot?: string | undefined;
}

/** One process: the cost of a step, ms. */
export interface PeerSample {
  readonly cpuMs: number;
  readonly wallMs: number;
  /** What is stored, and when. */
  readonly durable: string;
}

export type PeerCost =
  | (PeerSample & { readonly name: string; readonly aside?: string | undefined })
  | { readonly name: string; readonly skipped: string };

/** The costs as a table of Markdown, with ratios to the peer whose name is `floor`. */
export function peerTable(costs: readonly PeerCost[]): string {
  const floor = costs.find(({ name }) => name === 'floor');
  const ratio = (cost: PeerSample) =>
    floor !== undefined && 'cpuMs' in floor ? amount(cost.cpuMs / floor.cpuMs, 'x') : '';
  const line = (cost: PeerCost) => {
    if ('skipped' in cost) return `| ${cost.name} | skipped: ${cost.skipped.replaceAll(/[\n|]+/g, ' ')} | | | |`;
    const aside = cost.aside === undefined ? '' : `, ${cost.aside} not counted`;
    return `| ${cost.name} | ${amount(cost.cpuMs, 'ms')}${aside} | ${ratio(cost)} | ${amount(cost.wallMs, 'ms')} | ${cost.durable} |`;
  };
  const head = ['| | CPU a step | to the floor | wall time a step | durable |', '| --- | --- | --- | --- | --- |'];
  return [...head, ...costs.map(line)].join('\n');
}
