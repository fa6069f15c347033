import { jsonAnswer } from '../http/problem.ts';
import type { GrantedCall, Route, RunCall } from '../http/route.ts';
import { runViewOf } from '../http/runs/run-view.ts';
import { listWaitViews } from '../http/runs/waits.ts';
import type { Agent, OpenWait, RunCheckpoint, SentAnswer, Tool } from '../index.ts';
import type { SentCommand } from '../kit.ts';
import { openWaitsIn } from '../record/interrupted.ts';
import { answersIn, endingAnswer } from '../run/waits/sent-answer.ts';
import { inputSchemaOf } from '../tool/toolbox.ts';
import type { JsonValue } from '../values/json.ts';
import { Shown } from './record/shown-value.ts';
import type { AnswerView, LongPart, RecordView, ShownWait, WaitPart } from './wire.ts';

/** Values of a wait; its other parts are short, or texts. */
const values: readonly WaitPart[] = ['input', 'modelInput', 'detail', 'options', 'schema'];
const texts: readonly WaitPart[] = ['prompt', 'question'];
/** The bytes of the values and texts of a page of waits. */
const PAGE_BYTES = 2 ** 20;

type Parts = { readonly [part in WaitPart]?: JsonValue };

/** Returns a wait without what is too long to send with it. @param shown counts what was sent */
function shownWait<W extends OpenWait>(wait: W, shown: Shown): ShownWait<W> {
  const parts: Parts = wait;
  const rest: { [part in WaitPart]?: JsonValue | undefined } = {};
  const long: { [part in WaitPart]?: LongPart } = {};
  const at = (part: WaitPart) => `wait=${encodeURIComponent(wait.id.toWellFormed())}&part=${part}`;
  for (const part of values) {
    const value = parts[part];
    const left = value === undefined ? undefined : shown.part(value, at(part));
    if (!left) continue;
    rest[part] = undefined;
    long[part] = left;
  }
  for (const part of texts) {
    const value = parts[part];
    if (typeof value !== 'string') continue;
    const { text, bytes, at: place } = shown.text(value, at(part));
    if (place === undefined) continue;
    rest[part] = text;
    long[part] = { text, bytes, at: place };
  }
  // A part that is undefined is not in the answer.
  return Object.keys(long).length === 0 ? wait : ({ ...wait, ...rest, long } as ShownWait<W>);
}

/** Returns the waits of one run as Studio sends them. */
export function shownWaits(waits: readonly OpenWait[]): readonly ShownWait<OpenWait>[] {
  const shown = new Shown();
  return waits.map((wait) => shownWait(wait, shown));
}

/** Returns a part of an open wait; undefined if there is none. */
export function partOfWait(record: RunCheckpoint, waitId: string, part: string | undefined): unknown {
  const wait: Parts | undefined = openWaitsIn(record).find(({ id }) => id === waitId);
  return wait && [...values, ...texts].find((each) => each === part) && wait[part as WaitPart];
}

/** The most answers to a wait that are shown: each of many voters has one. */
const SHOWN_ANSWERS = 8;
/** Most characters of a note that the page shows of each. */
const NOTE_CHARS = 500;

/** Returns the answers to some waits that no process has read, by the ids of their waits. */
export function shownAnswersOf(
  waits: readonly OpenWait[],
  commands: readonly SentCommand[],
): Pick<RecordView, 'answers'> {
  const sent = answersIn(commands);
  const shown = new Shown();
  const answers = waits.flatMap((wait) => {
    const own = sent.get(wait.id);
    if (!own) return [];
    const last = endingAnswer(wait, own);
    const views = own.slice(0, SHOWN_ANSWERS).map((answer) => answerView(answer, { isLast: answer === last, shown }));
    return [[wait.id, views] as const];
  });
  return answers.length > 0 ? { answers: Object.fromEntries(answers) } : {};
}

function answerView(
  { how, by, at, input, note }: SentAnswer,
  { isLast, shown }: { readonly isLast: boolean; readonly shown: Shown },
): AnswerView {
  return {
    how,
    ...(by ? { by } : {}),
    ...(at === undefined ? {} : { at }),
    ...(isLast ? { isLast: true } : {}),
    ...(note === undefined ? {} : { note: note.slice(0, NOTE_CHARS).toWellFormed() }),
    // What is too long for the page is only said to be so: the record does not have it yet.
    ...(input === undefined ? {} : { input: shown.value(input, '') }),
  };
}

/** Makes a route for clients answer with waits as Studio sends them. Any other route stays as it is. */
export function withShownWaits(route: Route): Route {
  switch (`${route.method} ${route.path}`) {
    case 'GET /waiting':
      return { ...route, handle: showPage } as Route;
    case 'GET /runs/:runId':
      return { ...route, handle: showRun } as Route;
    default:
      return route;
  }
}

async function showPage(call: GrantedCall): Promise<Response> {
  const { items, ...rest } = await listWaitViews(call);
  const shown = new Shown(PAGE_BYTES);
  return jsonAnswer({ ...rest, items: items.map((wait) => shownWait(wait, shown)) });
}

async function showRun(call: RunCall): Promise<Response> {
  const view = await runViewOf(call);
  return jsonAnswer({ ...view, waits: shownWaits(view.waits) });
}

/** Returns the schemas of the inputs that a person may change, by the ids of their waits. What is too long is left out. */
export function formsOf(
  waits: readonly OpenWait[],
  { tools, registry }: { readonly tools: Agent['tools']; readonly registry: readonly Tool[] },
): Pick<RecordView, 'forms'> {
  const shown = new Shown();
  const forms = waits.flatMap((wait) => {
    if (wait.kind !== 'approval' || !wait.editable || wait.tool === undefined) return [];
    const schema = inputSchemaOf(wait.tool, { entries: tools, registry });
    const { value } = schema ? shown.value(schema, '') : {};
    return value === undefined ? [] : [[wait.id, value] as const];
  });
  return forms.length > 0 ? { forms: Object.fromEntries(forms) as RecordView['forms'] & object } : {};
}
