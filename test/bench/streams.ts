import { createExecutor, defineAgent, type Model, type Run } from 'pawl';
import { measured, median } from './measure.ts';
import type { Part, Row } from './report.ts';

type StreamPart = Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never;

const PIECE = 'lorem ips';

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A model that answers with so many pieces of text. Each is made when it is read, as from a network that does not wait. */
function talkingModel(pieces: number): Model {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    async doGenerate() {
      throw new Error('this model only streams');
    },
    async doStream() {
      const parts = partsOf(pieces);
      return {
        stream: new ReadableStream({
          pull(controller) {
            const { done, value } = parts.next();
            if (done) controller.close();
            else controller.enqueue(value);
          },
        }),
      };
    },
  };
}

function* partsOf(pieces: number): Generator<StreamPart> {
  yield { type: 'stream-start', warnings: [] };
  yield { type: 'text-start', id: 't' };
  for (let i = 0; i < pieces; i++) yield { type: 'text-delta', id: 't', delta: PIECE };
  yield { type: 'text-end', id: 't' };
  yield { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };
}

const reading = ['nothing', 'events'] as const;
type Reading = (typeof reading)[number];

interface Measurement {
  readonly floorUs: number;
  readonly oursUs: number;
}

/** What a piece of streamed text costs beyond reading it. */
export async function streamRows(isQuick: boolean): Promise<Part> {
  const pieces = isQuick ? 10_000 : 20_000;
  const found = new Map<Reading, Measurement[]>(reading.map((each) => [each, []]));
  for (let repetition = 0; repetition <= (isQuick ? 7 : 21); repetition++) {
    for (const [by, measurements] of found) {
      const measurement = await measure(pieces, by);
      if (repetition > 2) measurements.push(measurement);
    }
  }
  return { rows: [...found].map(([by, of]) => pieceRow(by, of, pieces)), broken: [] };
}

function pieceRow(by: Reading, of: readonly Measurement[], pieces: number): Row {
  const floor = median(of.map(({ floorUs }) => floorUs));
  const ours = median(of.map(({ oursUs }) => oursUs));
  return {
    what: by === 'nothing' ? 'a streamed piece of text' : 'a streamed piece of text, with a consumer of its events',
    value: median(of.map((each) => each.oursUs / each.floorUs)),
    unit: 'x',
    budget: 4,
    note: `${ours.toFixed(2)} us, reading the stream ${floor.toFixed(2)} us; ${pieces} pieces of ${PIECE.length} characters`,
  };
}

async function measure(pieces: number, by: Reading): Promise<Measurement> {
  const model = talkingModel(pieces);
  const floor = await measured(() => readAlone(model, pieces));
  const ours = await measured(() => readInRun(model, pieces, by));
  return { floorUs: (1_000 * floor.cpuMs) / pieces, oursUs: (1_000 * ours.cpuMs) / pieces };
}

/** The floor: the same stream, read to its end, and its text appended. */
async function readAlone(model: Model, pieces: number): Promise<void> {
  const { stream } = await model.doStream({ prompt: [] });
  const reader = stream.getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (value.type === 'text-delta') text += value.delta;
  }
  checkText(text, pieces);
}

const agent = defineAgent({ id: 'talker', instructions: 'Talk.' });

async function readInRun(model: Model, pieces: number, by: Reading): Promise<void> {
  const executor = createExecutor({ models: { fast: model }, agents: [agent] });
  const run = await executor.start(agent, { prompt: 'Talk.' });
  const text = by === 'events' ? textOf(run) : undefined;
  const { output } = await run.result;
  checkText(String(output), pieces);
  if (text) checkText(await text, pieces);
}

async function textOf(run: Run): Promise<string> {
  let text = '';
  for await (const event of run.events()) if (event.type === 'model.delta') text += event.text;
  return text;
}

/** A reader that lost pieces would look fast. */
function checkText(text: string, pieces: number): void {
  if (text.length !== pieces * PIECE.length) throw new Error(`${text.length} characters of ${pieces * PIECE.length}`);
}
