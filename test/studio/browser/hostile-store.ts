// A store whose records were written by hand: no executor would take such names of tools. Each text of them would execute as HTML,
// as an address, or as a template.
import { memoryStore, type RunCheckpoint } from 'pawl';
import { callTools, reply } from 'pawl/testing';
import { hostOf, toolOf, until } from '../../fixtures/host.ts';

const CALLS = 25;
const RICH = 8;

const shapes: readonly ((run: string) => string)[] = [
  (run) => `<img src=x onerror="${run}">`,
  (run) => `<script>${run}</script>`,
  (run) => `<svg onload="${run}">`,
  (run) => `<svg><script>${run}</script></svg>`,
  (run) => `<iframe srcdoc="<script>parent.${run}</script>"></iframe>`,
  (run) => `<iframe src="javascript:parent.${run}"></iframe>`,
  (run) => `<object data="javascript:${run}"></object>`,
  (run) => `<embed src="javascript:${run}">`,
  (run) => `<style onload="${run}"></style>`,
  (run) => `<body onload="${run}">`,
  (run) => `<input autofocus onfocus="${run}">`,
  (run) => `<details open ontoggle="${run}"><summary>x</summary></details>`,
  (run) => `<video><source onerror="${run}"></video>`,
  (run) => `<audio src=x onerror="${run}"></audio>`,
  (run) => `<math href="javascript:${run}">x</math>`,
  (run) => `<a href="javascript:${run}" autofocus onfocus="${run}">x</a>`,
  (run) => `<form action="javascript:${run}"><button autofocus onfocus="${run}">x</button></form>`,
  (run) => `<link rel=stylesheet href=x onerror="${run}">`,
  (run) => `<base href="javascript:${run}//">`,
  (run) => `[x](javascript:${run})`,
  (run) => `![x](x"onerror="${run})`,
  (run) => `{{constructor.constructor('${run}')()}}`,
  (run) => `\${${run}}`,
  (run) => `javascript:${run}`,
  (run) => `data:text/html,<script>opener.${run}</script>`,
];
/** What ends the place in which a text may stand. */
const ends = ['', '">', "'>", '</textarea>', '</title></style>', '--></svg>', '`;', '\u202e\u0000'];

/** 200 texts. One that executes says so by itself. */
export const payloads: readonly string[] = ends.flatMap((end, i) =>
  shapes.map(
    (shape, j) => `${end.replace('\u0000', '\u2066')}${shape(`complain('EXECUTED ${i * shapes.length + j}')`)}`,
  ),
);

/** The id of the k-th run. */
export const idOf = (k: number): string => payloads[k] ?? '';
/** The payloads of a run with calls. */
export const ownOf = (run: number): readonly string[] => payloads.slice(run * CALLS, (run + 1) * CALLS);
/** The runs that have calls. */
export const richRuns: readonly number[] = Array.from({ length: RICH }, (_, run) => run);

const place = (name: string, at: number) => `at_${name}_${at}_`;

/** A run with a step of 25 calls, all of which fail, as an executor records it. */
async function template() {
  const store = memoryStore();
  const numbers = Array.from({ length: CALLS }, (_, at) => at);
  const tools = numbers.map((at) =>
    toolOf(place('name', at), 'idempotent', () => Promise.reject(new Error(place('error', at)))),
  );
  const calls = numbers.map((at) => ({
    name: place('name', at),
    input: { [place('key', at)]: place('input', at) },
    callId: place('id', at),
  }));
  const last = callTools([{ name: 'wait', input: { why: place('input', 0) }, callId: 'w' }]);
  const wait = toolOf('wait', 'once', (_, context) => context.ask({ question: place('prompt', 0) }));
  const host = hostOf({
    store,
    script: [callTools(calls), last, reply('')],
    tools: [...tools, wait],
    agent: { name: place('agent', 0) },
    journal: { flushMs: 1 },
    defaults: { waitLingerMs: 1 },
  });
  await (await host.start({ runId: place('run', 0), prompt: place('prompt', 0) })).result;
  await until(() => host.executor.runs.get().length === 0);
  const record = (await store.load(place('run', 0))) as RunCheckpoint;
  const page = await store.journal.read(place('run', 0), { limit: 10_000 });
  return { record, entries: page?.entries ?? [] };
}

/** Gives a run waits of its own: no two have one id. */
function withOwnWaits<T>(value: T, { waiting }: RunCheckpoint, run: number): T {
  const text = (waiting?.waits ?? []).reduce(
    (all, { id }) => all.replaceAll(id, `${id.slice(0, -1)}${'abcdefgh'[run]}`),
    JSON.stringify(value),
  );
  return JSON.parse(text) as T;
}

/** Puts payloads into the places of a value. */
function filled<T>(value: T, payloadOf: (name: string, at: number) => string): T {
  const text = JSON.stringify(value).replaceAll(/at_(\w+?)_(\d+)_/g, (_, name: string, at: string) =>
    JSON.stringify(payloadOf(name, Number(at))).slice(1, -1),
  );
  return JSON.parse(text) as T;
}

/** 200 runs; the first eight have calls, labels and errors, the others are parked for a reason. */
export async function hostileStore(): Promise<ReturnType<typeof memoryStore>> {
  const { record, entries } = await template();
  const store = memoryStore();
  for (const [k, text] of payloads.entries()) {
    const isRich = k < RICH;
    const payloadOf = (name: string, at: number) =>
      isRich && name !== 'run' && name !== 'prompt' ? (ownOf(k)[at] ?? '') : text;
    const labels = Object.fromEntries(isRich ? ownOf(k).map((own) => [own, own]) : [[text, text]]);
    const own = { ...filled(record, payloadOf), labels };
    if (isRich) {
      const claim = await store.claim(text, 'by hand', 60_000);
      const events = { entries: withOwnWaits(filled(entries, payloadOf), record, k) };
      await store.save(withOwnWaits(own, record, k), { claim: claim ?? undefined, events });
      if (claim) await store.release(claim);
    } else {
      const { openStep: _, waiting: __, ...rest } = own;
      await store.save({ ...rest, messages: rest.messages.slice(0, 1), parked: { code: text, reason: text } });
    }
  }
  return store;
}
