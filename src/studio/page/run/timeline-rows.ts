import type { Timeline, TimelineCall, TimelinePhase, TimelineStep } from './timeline.ts';
import type { TimelineMark } from './timeline-marks.ts';

/** A row of the timeline. */
export type TimelineRow =
  | { readonly key: string; readonly kind: 'earlier'; readonly to: number }
  | { readonly key: string; readonly kind: 'phase'; readonly phase: TimelinePhase }
  | { readonly key: string; readonly kind: 'later'; readonly name: string; readonly index: number }
  | { readonly key: string; readonly kind: 'step'; readonly step: TimelineStep; readonly isOpen: boolean }
  | { readonly key: string; readonly kind: 'call'; readonly step: TimelineStep; readonly call: TimelineCall }
  | { readonly key: string; readonly kind: 'mark'; readonly mark: TimelineMark };

/** What is folded: steps before `openFrom`, but for those that the reader opened; later ones, if the reader closed them. */
interface Folding {
  readonly openFrom: number;
  readonly turned: ReadonlySet<number>;
  /** Earlier steps are loaded if a person asks for them. */
  readonly hasEarlier?: boolean;
}

/** Returns whether the calls of a step are shown. */
function isOpen(step: TimelineStep, { openFrom, turned }: Folding, marked: ReadonlySet<number>): boolean {
  const isShown = step.step >= openFrom || marked.has(step.step) || step.calls.some(({ state }) => state === 'unknown');
  return isShown !== turned.has(step.step);
}

/** Returns the rows of a timeline. @param phases the names of all phases of its agent */
export function rowsOfTimeline(
  { steps, marks, phases }: Timeline,
  folding: Folding,
  names: readonly string[] = [],
): readonly TimelineRow[] {
  const rows: TimelineRow[] = [];
  const inside = new Set(marks.flatMap((mark) => (mark.isInside && mark.kind === 'owner' ? [mark.step] : [])));
  let [nextMark, nextPhase] = [0, 0];
  const addMarks = (isBefore: (mark: TimelineMark) => boolean) => {
    for (let mark = marks[nextMark]; mark && isBefore(mark); mark = marks[++nextMark])
      rows.push({ key: `mark ${nextMark}`, kind: 'mark', mark });
  };
  const addPhases = (index: number) => {
    for (let phase = phases[nextPhase]; phase && phase.index <= index; phase = phases[++nextPhase])
      rows.push({ key: `phase ${phase.index}`, kind: 'phase', phase });
  };
  const to = (steps[0]?.step ?? 0) - 1;
  if (folding.hasEarlier && to > 0) rows.push({ key: 'earlier', kind: 'earlier', to });
  for (const step of steps) {
    addMarks((mark) => mark.step < step.step || (mark.step === step.step && !mark.isInside));
    addPhases(step.phase ?? -1);
    const shown = isOpen(step, folding, inside);
    rows.push({ key: `${step.step}`, kind: 'step', step, isOpen: shown });
    addMarks((mark) => mark.step <= step.step);
    if (shown)
      for (const call of step.calls) rows.push({ key: `${step.step}/${call.callId}`, kind: 'call', step, call });
  }
  addPhases(Number.POSITIVE_INFINITY);
  for (const [index, name] of names.entries())
    if (index >= phases.length) rows.push({ key: `phase ${index}`, kind: 'later', name, index });
  addMarks(() => true);
  return rows;
}

/** Returns what a step did, on one line: `3 read_file, 3 add_note`. */
export function toolsOf({ calls, words }: TimelineStep): string {
  if (calls.length === 0) return words;
  const counts = new Map<string, number>();
  for (const { name } of calls) counts.set(name, (counts.get(name) ?? 0) + 1);
  const shown = [...counts].slice(0, 6).map(([name, count]) => `${count} ${name}`);
  return counts.size > 6 ? `${shown.join(', ')}, …` : shown.join(', ');
}

/** Where a choice moves: from a row, forward or back, and whether only from model turn to model turn. */
interface Move {
  readonly from: number;
  readonly by: 1 | -1;
  readonly isStep?: boolean;
}

/** Returns the next row that can be chosen; `from` if there is none. */
export function nextRow(rows: readonly TimelineRow[], { from, by, isStep = false }: Move): number {
  for (let at = from + by; at >= 0 && at < rows.length; at += by) {
    const kind = rows[at]?.kind;
    if (kind === 'step' || (kind === 'call' && !isStep)) return at;
  }
  return from;
}
