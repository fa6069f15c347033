import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { checkSync } from 'recheck';
import { isNode, type Node, nameOf, type Source, walk } from './source.ts';

/** A regular expression in a source. Without a pattern it is built at run time, of what nobody can check here. */
export interface Expression {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly pattern?: string;
  readonly flags: string;
}

/** Every regular expression of a file: literals, and what `RegExp` is called with, unless it is made and not used. */
export function expressionsOf(source: Source): Expression[] {
  const found: Expression[] = [];
  // `new RegExp(text);` asks whether a text is an expression. Nothing can run what it makes.
  const unused = new Set<unknown>();
  walk(source.program, (node) => {
    if (node.type === 'ExpressionStatement') unused.add(node.expression);
    if (unused.has(node) && node.type === 'NewExpression') return;
    const expression = literalOf(node) ?? constructedOf(node);
    if (expression === undefined) return;
    const text = source.text.slice(node.start, node.end);
    found.push({ path: source.path, line: source.lineAt(node.start), text, ...expression });
  });
  return found;
}

function literalOf({ type, regex }: Node): Pick<Expression, 'pattern' | 'flags'> | undefined {
  if (type !== 'Literal' || typeof regex !== 'object' || regex === null) return undefined;
  return regex as { pattern: string; flags: string };
}

function constructedOf({ type, callee, arguments: given }: Node): Pick<Expression, 'pattern' | 'flags'> | undefined {
  if ((type !== 'NewExpression' && type !== 'CallExpression') || nameOf(callee) !== 'RegExp') return undefined;
  const [pattern, flags] = Array.isArray(given) ? given.map(textOf) : [];
  return { flags: flags ?? '', ...(pattern === undefined ? {} : { pattern }) };
}

/** The value of a literal text. */
function textOf(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;
}

/**
 * Why an expression may take more than linear time, if it may. Only a proof counts: the checker builds the automaton, and
 * what it has no automaton for (a backreference) is refused. The result depends on nothing but the expression.
 */
export function dangerOf({ pattern, flags }: Pick<Expression, 'pattern' | 'flags'>): string | undefined {
  if (pattern === undefined) return 'is built at run time, so that nothing proves it linear';
  const found = checkSync(pattern, flags, { checker: 'automaton', timeout: 60_000 });
  if (found.status === 'safe') return undefined;
  return found.status === 'vulnerable'
    ? `takes ${found.complexity.summary} time`
    : `is not proved linear (${found.error.kind})`;
}

/**
 * Proofs that an expression is linear, kept in a file: some take a second. They hold as long as the expression and the checker are
 * the same.
 */
export class Proofs {
  readonly #path: string;
  readonly #known: ReadonlySet<string>;
  /** What is asked for now: the others are of expressions that are gone. */
  readonly #used = new Set<string>();

  /** @param path a file of proofs; one that is missing or damaged holds none */
  constructor(path: string, { isBelieved = true } = {}) {
    this.#path = path;
    this.#known = new Set(isBelieved ? readProofs(path) : []);
  }

  /** As `dangerOf`, but what was proved before is not proved again. */
  dangerOf(expression: Pick<Expression, 'pattern' | 'flags'>): string | undefined {
    const { pattern, flags } = expression;
    const key = `${checker} /${pattern}/${flags}`;
    const isKnown = pattern !== undefined && (this.#known.has(key) || this.#used.has(key));
    const danger = isKnown ? undefined : dangerOf(expression);
    if (danger === undefined) this.#used.add(key);
    return danger;
  }

  /** Writes the file if what it holds has changed. */
  keep(): void {
    const used = [...this.#used].sort();
    if (used.join() === readProofs(this.#path).join()) return;
    mkdirSync(dirname(this.#path), { recursive: true });
    const written = `${this.#path}.${process.pid}`;
    writeFileSync(written, `${JSON.stringify(used, null, 2)}\n`);
    renameSync(written, this.#path);
  }
}

const require = createRequire(import.meta.url);
const checker = `recheck ${(require('recheck/package.json') as { version: string }).version}`;

function readProofs(path: string): string[] {
  try {
    const found: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Array.isArray(found) ? found.filter((each) => typeof each === 'string') : [];
  } catch {
    return [];
  }
}
