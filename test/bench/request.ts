import { parseArgs } from 'node:util';

/** What the command line of the bench asks for. */
export type BenchRequest<P extends NamedPart> =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'measure'; readonly parts: readonly P[]; readonly isQuick: boolean; readonly form: Form }
  /** One part: this build beside one of an earlier commit. */
  | { readonly kind: 'compare'; readonly commit: string; readonly isQuick: boolean; readonly form: Form }
  | { readonly kind: 'stored'; readonly paths: readonly string[]; readonly form: Form };

/** How figures are printed. */
export type Form = 'table' | 'json' | 'markdown';

interface NamedPart {
  readonly name: string;
  readonly title: string;
  readonly isCore: boolean;
}

const usage = `usage: npm run bench -- [options]

Measures Pawl as it is built against the floor, on this machine.

  --part <name>     measures this part only; give it again for more parts
  --list            lists the parts
  --quick           takes under 30 s: fewer rounds, and the parts that are marked
                    with * only; its figures are rough
  --json            prints the figures as JSON
  --markdown        prints the tables of docs/speed.md
  --against <commit>
                    measures nothing else than what a step costs beside a build of
                    that commit, by turns in one process, and beside a copy of itself
  --from <file>     measures nothing, prints the figures that --json has printed;
                    give it again to see several runs beside each other
  --help            prints this

npm run --silent keeps what npm itself prints out of the output.
Exit codes: 0; 1 if measured work broke a promise; 2 for a wrong option.`;

const options = {
  part: { type: 'string', multiple: true },
  list: { type: 'boolean' },
  quick: { type: 'boolean' },
  json: { type: 'boolean' },
  markdown: { type: 'boolean' },
  against: { type: 'string' },
  from: { type: 'string', multiple: true },
  help: { type: 'boolean' },
} as const;

/** Reads the command line of the bench. It measures nothing and prints nothing. */
export function requestOf<P extends NamedPart>(args: readonly string[], parts: readonly P[]): BenchRequest<P> {
  let flags: ReturnType<typeof parsed>;
  try {
    flags = parsed(args);
  } catch (error) {
    return wrong((error as Error).message);
  }
  const { part: names = [], from = [], against, list, quick: isQuick = false, json, markdown, help } = flags;
  if (help) return { kind: 'text', text: usage };
  if (list) return { kind: 'text', text: listOf(parts) };
  const unknown = names.find((name) => !parts.some((part) => part.name === name));
  if (unknown !== undefined)
    return wrong(`there is no part ${JSON.stringify(unknown)}. The parts are:\n${listOf(parts)}`);
  if (json && markdown) return wrong('--json and --markdown exclude each other.');
  const form = json ? 'json' : markdown ? 'markdown' : 'table';
  if (against !== undefined) {
    if (names.length + from.length > 0) return wrong('--against is a part of its own: leave out --part and --from.');
    return { kind: 'compare', commit: against, isQuick, form };
  }
  if (from.length === 0) return { kind: 'measure', parts: chosen(parts, { names, isQuick }), isQuick, form };
  if (isQuick || names.length > 0) return wrong('--from measures nothing: leave out --part and --quick.');
  return { kind: 'stored', paths: from, form };
}

const parsed = (args: readonly string[]) => parseArgs({ args: [...args], options, allowPositionals: false }).values;

function chosen<P extends NamedPart>(
  parts: readonly P[],
  { names, isQuick }: { readonly names: readonly string[]; readonly isQuick: boolean },
): readonly P[] {
  if (names.length > 0) return parts.filter(({ name }) => names.includes(name));
  return isQuick ? parts.filter(({ isCore }) => isCore) : parts;
}

function listOf(parts: readonly NamedPart[]): string {
  const width = Math.max(...parts.map(({ name }) => name.length));
  return parts.map(({ name, title, isCore }) => `${isCore ? '*' : ' '} ${name.padEnd(width)}  ${title}`).join('\n');
}

const wrong = (message: string) =>
  ({ kind: 'wrong', message: `${message}\nnpm run bench -- --help has all options.` }) as const;
