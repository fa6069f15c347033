import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { JournalEvent, RecordedMessagesPage, RecordView } from '../../wire.ts';
import { type ChartFacts, chartAfter, factsBefore, unseen } from '../chart/chart-model.ts';
import { afterTransition, unmoved } from '../chart/machine-model.ts';
import { get, pathOfApi, type Trouble } from '../frame/api.ts';
import { connection, followStudio, gone, liveChanges, storeRead } from '../frame/live.ts';
import { useNewest, useNews, useShared } from '../frame/use-shared.ts';
import { lastMessages, timelineOfRecord } from './record-timeline.ts';
import { emptyTimeline, shortenedInput, type Timeline } from './timeline.ts';
import { folded } from './timeline-model.ts';

/** Events are folded together at most this often, ms. */
const FOLD_MS = 80;
/** The record is read again at most this often, ms. */
const READ_MS = 1_000;
/** A run whose events do not come within this time has none, ms. */
const SILENT_MS = 700;
/** Most steps that a tab keeps, and how many are left then: more only if a person asked for all of them. */
const MAX_STEPS = { newest: 600, all: 20_000 } as const;
const STEPS_LEFT = 300;
/** Events that change nothing in the record. */
const passing: ReadonlySet<string> = new Set(['model.delta', 'tool.input', 'tool.progress', 'step.started']);

/** All that the view of a run knows of it. */
export function useRunData(runId: string) {
  const [record, setRecord] = useState<RecordView>();
  const [trouble, setTrouble] = useState<Trouble>();
  const [timeline, setTimeline] = useState(emptyTimeline);
  const [chart, setChart] = useState(unseen);
  const [machine, setMachine] = useState(unmoved);
  const [isGone, setGone] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const [isBare, setBare] = useState(false);
  const newest = useNewest({ record, isGone, isBare });
  const reading = useReading(async () => {
    // An answer that was asked for before the run was erased does not bring it back.
    const wasGone = newest.current.isGone;
    const answer = await get<RecordView>(pathOfApi('runs', runId, 'record'));
    const isMissing = answer.trouble?.status === 404;
    setTrouble(isMissing ? undefined : answer.trouble);
    if (isMissing) setGone(true);
    if (answer.trouble) return;
    if (wasGone) setGone(false);
    setRecord(answer.value);
    if ((await storeRead())?.parts.journal === false || newest.current.isBare)
      setTimeline(await withMessages(runId, answer.value));
  });
  useLayoutEffect(reading.soon, []);
  useLayoutEffect(() => {
    if (isGone) return;
    let waiting: JournalEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let known = emptyTimeline;
    let facts: ChartFacts | undefined;
    let moved = unmoved;
    const fold = () => {
      timer = undefined;
      const events = waiting;
      waiting = [];
      known = shortenedInput(folded(known, events), MAX_STEPS[isWhole ? 'all' : 'newest'], STEPS_LEFT);
      facts = events.reduce(chartAfter, facts ?? factsBefore(events[0], newest.current.record));
      if (known.steps.length > 0) setBare(false);
      if (known.steps.length > 0 || !newest.current.isBare) setTimeline(known);
      setChart(facts);
      moved = events.reduce(afterTransition, moved);
      setMachine(moved);
      if (events.some(({ type }) => !passing.has(type))) reading.soon();
    };
    const take = (event: JournalEvent) => {
      waiting.push(event);
      timer ??= setTimeout(fold, known === emptyTimeline ? 0 : FOLD_MS);
    };
    const end = followStudio(runId, take, isWhole);
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [runId, isGone, isWhole]);
  useSilence({ record, timeline }, () => {
    setBare(true);
    reading.soon();
  });
  useNewsOf(runId, reading.soon, () => setGone(true));
  const loadWhole = () => setWhole(true);
  return { record, trouble, timeline, chart, machine, isGone, isWhole, isBare, loadWhole, again: reading.soon };
}

interface Shown {
  readonly record: RecordView | undefined;
  readonly timeline: Timeline;
}

/** Says that a run has no events: its record has steps, and none of them comes. Then its process keeps no journal. */
function useSilence({ record, timeline }: Shown, say: () => void): void {
  const isSilent = timeline.steps.length === 0 && record?.record !== undefined && record.line.steps > 0;
  useEffect(() => {
    if (!isSilent) return;
    const timer = setTimeout(say, SILENT_MS);
    return () => clearTimeout(timer);
  }, [isSilent]);
}

/** Tells of each change of a run, also of one that a lost connection hid, and that it is gone. */
function useNewsOf(runId: string, change: () => void, leave: () => void): void {
  const isLive = useShared(connection).state === 'live';
  useEffect(() => {
    if (isLive) change();
  }, [isLive]);
  useNews(liveChanges, ({ lines }) => {
    if (lines.some((line) => line.runId === runId)) change();
  });
  useNews(gone, (id) => {
    if (id === runId) leave();
  });
}

/** Reads at once, then at most once in a while. */
function useReading(read: () => Promise<void>): { soon(): void } {
  const { current: own } = useRef({ isBusy: false, isWanted: false, isOver: false });
  const soon = () => {
    own.isWanted = true;
    if (!own.isBusy) void work();
  };
  const work = async () => {
    own.isBusy = true;
    while (own.isWanted && !own.isOver) {
      own.isWanted = false;
      await read();
      await new Promise((resolve) => setTimeout(resolve, READ_MS));
    }
    own.isBusy = false;
  };
  useEffect(
    () => () => {
      own.isOver = true;
    },
    [],
  );
  return { soon };
}

async function withMessages(runId: string, view: RecordView): Promise<Timeline> {
  const page = await get<RecordedMessagesPage>(`${pathOfApi('runs', runId, 'messages')}?${lastMessages(view)}`);
  return timelineOfRecord(view, page.trouble ? [] : page.value.items);
}
