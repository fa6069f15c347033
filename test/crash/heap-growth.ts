/** The heap of a process after a collection. */
export interface HeapSample {
  /** How many runs the process has ended. */
  readonly runs: number;
  readonly bytes: number;
}

export interface HeapGrowth {
  /** The median slope between two samples. */
  readonly kbPerThousandRuns: number;
  /** How many runs are between the first and the last sample that count. */
  readonly runs: number;
  /** The medians of the first and the last fifth of those samples, KB. */
  readonly from: number;
  readonly to: number;
}

/** An executor remembers how its last 1,000 runs ended: until then it grows. */
const REMEMBERED = 1_100;

/** Returns what a process keeps of each run: the median of all slopes, which single samples with many live runs do not move. */
export function heapGrowth(samples: readonly HeapSample[]): HeapGrowth {
  const counted = samples.filter(({ runs }) => runs >= REMEMBERED);
  const all = (samples.at(-1)?.runs ?? 0) - REMEMBERED;
  const slopes: number[] = [];
  for (const [i, a] of counted.entries())
    for (const b of counted.slice(i + 1))
      if (b.runs - a.runs > all / 3) slopes.push((b.bytes - a.bytes) / 1_024 / ((b.runs - a.runs) / 1_000));
  const fifth = Math.ceil(counted.length / 5);
  const kb = (part: readonly HeapSample[]) => median(part.map(({ bytes }) => bytes)) / 1_024;
  return {
    kbPerThousandRuns: median(slopes),
    runs: all,
    from: kb(counted.slice(0, fifth)),
    to: kb(counted.slice(-fifth)),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
