import type { BudgetView, RecordView } from '../../wire.ts';
import { words } from '../frame/words.ts';
import { span, usd, whole } from '../parts/amounts.ts';
import { Meter, Pairs } from '../parts/lists.tsx';
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
      {view.budget && <Budget budget={view.budget} />}
      {again.turns > 0 && (
        <p class="pad faint">
          {words.stages?.mayHaveAsked} {again.turns === 1 ? 'one more turn' : `${again.turns} more turns`}
          {words.stages?.paid}
        </p>
      )}
      {usage.usd === undefined && <p class="pad faint">{words.stages?.noCost}</p>}
    </section>
  );
}

interface Again {
  readonly turns: number;
  readonly input: number;
}

function Table({ view, again }: { readonly view: RecordView; readonly again: Again }) {
  const { usage, children } = view;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by the keyboard
    <section class="pad wide" aria-label="Tokens of each model" tabIndex={0}>
      <table>
        <thead>
          <Line cells={['Model', 'Turns', 'Input', 'Cached', 'Output', 'USD']} isHead />
        </thead>
        <tbody>
          {usage.models.map((use) => (
            <UseLine key={use.model} name={use.model || 'not recorded'} turns={use.turns} use={use} />
          ))}
          <UseLine name="This run" turns={view.line.steps} use={usage} />
          {again.turns > 0 && (
            <Line cells={['asked again after a restart', whole(again.turns), `≈ ${whole(again.input)}`, '', '', '']} />
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
    </section>
  );
}

const amounts = {
  tokens: ['Tokens', whole],
  usd: ['USD', usd],
  seconds: ['Model time', (seconds: number) => span(seconds * 1_000)],
} as const;

/** What the run's caller has used, with what its running calls hold. */
function Budget({ budget }: { readonly budget: BudgetView }) {
  return (
    <div class="pad">
      <h2>
        {words.stages?.budgetOf} {span(budget.windowMs)}
      </h2>
      <Pairs
        of={budget.amounts.map(({ kind, spent, limit }) => {
          const [name, text] = amounts[kind];
          return [
            name,
            <>
              <Meter part={limit > 0 ? spent / limit : 1} /> {text(spent)} of {text(limit)}
            </>,
          ];
        })}
      />
    </div>
  );
}

interface UseProps {
  readonly name: string;
  readonly turns: number;
  readonly use: Pick<RecordView['usage'], 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'usd'>;
}

function UseLine({ name, turns, use: { inputTokens, outputTokens, cachedInputTokens = 0, usd: paid } }: UseProps) {
  const counts = [turns, inputTokens, cachedInputTokens, outputTokens].map(whole);
  return <Line cells={[name, ...counts, paid === undefined ? '' : `$${usd(paid)}`]} />;
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
  if (bars.length === 0) return <p class="pad faint">{words.stages?.noTokens}</p>;
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
