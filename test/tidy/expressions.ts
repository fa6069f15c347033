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
