import type { RecordView } from '../../wire.ts';
import { usd, whole } from '../parts/amounts.ts';
import { placed } from './placed.ts';
import type { StepTokens, Timeline } from './timeline.ts';

/** Bars that are drawn; of more steps, several share a bar. */
const MAX_BARS = 60;

/** What was used and paid. */
export function UsageTab({ view, timeline }: { readonly view: RecordView; readonly timeline: Timeline }) {
  const { usage } = view;
  const again = turnsAgain(timeline);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
    <section class="scroll" aria-label="Tokens and cost" tabIndex={0}>
      <Bars timeline={timeline} />
      <Table view={view} again={again} />
      {again.turns > 0 && (
        <p class="pad faint">
          A process that died may have asked for {again.turns === 1 ? 'one more turn' : `${again.turns} more turns`}:
          the provider may have been paid for an answer that the record never got, and the numbers of this run do not
          have.
        </p>
      )}
      {usage.usd === undefined && (
        <p class="pad faint">A run without a budget with prices has no cost in its record.</p>
      )}
    </section>
  );
}

interface Again {
  readonly turns: number;
  readonly input: number;
}

function Table({ view, again }: { readonly view: RecordView; readonly again: Again }) {
  const { usage, children, record } = view;
  return (
    <div class="pad wide">
      <table>
        <thead>
          <Line cells={['Model', 'Turns', 'Input', 'Cached', 'Output', 'USD']} isHead />
        </thead>
        <tbody>
          {usage.models.map(({ model, inputTokens, outputTokens, usd: paid }) => (
            <Line
              key={model}
              cells={[
                model,
                '',
                whole(inputTokens),
                '',
                whole(outputTokens),
                paid === undefined ? '' : `$${usd(paid)}`,
              ]}
            />
          ))}
          <Line
            cells={[
              'This run',
              whole(view.line.steps),
              whole(usage.inputTokens),
              whole(usage.cachedInputTokens ?? 0),
              whole(usage.outputTokens),
              usage.usd === undefined ? '' : `$${usd(usage.usd)}`,
            ]}
          />
          {again.turns > 0 && (
            <Line cells={['asked again after a restart', whole(again.turns), `≈ ${whole(again.input)}`, '', '', '']} />
          )}
          {record?.spend && (
            <Line
              cells={[
                'counted by its budget',
                '',
                `${whole(record.spend.tokens)} tokens`,
                '',
                '',
                `$${usd(record.spend.usd)}`,
              ]}
            />
          )}
          {children.map(({ runId, line }) => (
            <Line
              key={runId}
              cells={[
                runId,
                line ? whole(line.steps) : '',
                line ? `${whole(line.tokens)} tokens` : 'not stored any more',
                '',
                '',
                line?.usd === undefined ? '' : `$${usd(line.usd)}`,
              ]}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Turns for which the model was asked again after a change of owner, and their input. */
function turnsAgain({ marks, steps }: Timeline): Again {
  const numbers = marks.flatMap((mark) => (mark.kind === 'owner' && mark.isTurnAgain ? [mark.step] : []));
  const inputs = numbers.map((step) => steps.find((each) => each.step === step)?.tokens?.input ?? 0);
  return { turns: numbers.length, input: inputs.reduce((sum, each) => sum + each, 0) };
}

function Line({ cells, isHead = false }: { readonly cells: readonly string[]; readonly isHead?: boolean }) {
  const Cell = isHead ? 'th' : 'td';
  return (
    <tr>
      {placed(cells).map(({ place, item }) => (
        <Cell key={place} class={place === 0 ? '' : 'num'}>
          {item}
        </Cell>
      ))}
    </tr>
  );
}

interface BarOf extends StepTokens {
  readonly name: string;
}

function barsOf({ steps }: Timeline): readonly BarOf[] {
  const known = steps.filter(({ tokens }) => tokens);
  const each = Math.max(1, Math.ceil(known.length / MAX_BARS));
  const bars: BarOf[] = [];
  for (let i = 0; i < known.length; i += each) {
    const group = known.slice(i, i + each);
    const sum = (field: keyof StepTokens) => group.reduce((total, { tokens }) => total + (tokens?.[field] ?? 0), 0);
    bars.push({ name: `${group[0]?.step}`, input: sum('input'), cached: sum('cached'), output: sum('output') });
  }
  return bars;
}

const HEIGHT = 100;

function Bars({ timeline }: { readonly timeline: Timeline }) {
  const bars = barsOf(timeline);
  const top = Math.max(1, ...bars.map(({ input, output }) => input + output));
  const height = (tokens: number) => ({ height: `${Math.max(1, (Math.max(0, tokens) / top) * HEIGHT)}px` });
  if (bars.length === 0)
    return <p class="pad faint">Tokens a step come from the journal; this run has none of them.</p>;
  const last = bars.at(-1);
  return (
    <>
      <div class="sec">
        <h2>Tokens a step</h2>
        <span class="end">
          <i class="key c" /> cached input <i class="key n" /> new input <i class="key o" /> output
        </span>
      </div>
      <div
        class={`bars${bars.length > 24 ? ' many' : ''}`}
        role="img"
        aria-label={`Tokens a step: ${bars.length} bars, the last one with ${last ? whole(last.input + last.output) : 0}`}
      >
        {bars.map(({ name, input, cached, output }, i) => (
          <div
            key={name}
            title={`step ${name}: ${whole(input)} in, ${whole(cached)} of it cached, ${whole(output)} out`}
          >
            <i class="o" style={height(output)} />
            <i class="n" style={height(input - cached)} />
            <i class="c" style={height(cached)} />
            <span>{bars.length <= 24 || i % 10 === 0 ? name : ''}</span>
          </div>
        ))}
      </div>
    </>
  );
}
