import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync } from 'rolldown/utils';

/** A type that a public declaration names, and that no entry point exports. */
export interface HiddenType {
  readonly name: string;
  /** The public declaration that names it. */
  readonly namedBy: string;
}

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Where a name is declared: a name of its own in each file. */
type Place = `${string}#${string}`;

interface Module {
  /** Declarations by their names in this file. */
  readonly declared: ReadonlyMap<string, readonly Node[]>;
  /** What the file imports or exports from other files of the package, by the name it has here. */
  readonly imported: ReadonlyMap<string, Place>;
  readonly exported: ReadonlyMap<string, Place>;
}

/**
 * The types of this package that the public declarations of an entry point name and that neither it nor one of `others`
 * exports.
 */
export function hiddenTypes(entry: string, others: readonly string[] = []): readonly HiddenType[] {
  const files = new Files();
  const exported = new Set(files.exportsOf(entry));
  const known = new Set([...exported, ...others.flatMap((other) => files.exportsOf(other))]);
  const hidden = [...exported].flatMap((place) =>
    files
      .namedBy(place)
      .filter((named) => !known.has(named))
      .map((named) => ({ name: nameIn(named), namedBy: nameIn(place) })),
  );
  return [...new Map(hidden.map((each) => [`${each.name} ${each.namedBy}`, each])).values()];
}

class Files {
  readonly #modules = new Map<string, Module>();

  exportsOf(path: string): Place[] {
    return [...this.#module(path).exported.values()].map((place) => this.#origin(place));
  }

  /** The declarations of the package that a declaration names. */
  namedBy(place: Place): Place[] {
    const path = pathIn(place);
    const { declared } = this.#module(path);
    const nodes = declared.get(nameIn(place));
    if (!nodes) throw new Error(`${path} declares no ${nameIn(place)}`);
    const found = nodes.flatMap((node) => [...namesIn(node, new Set())]);
    return found.flatMap(({ name, isValue }) => {
      const named = this.#find(path, name);
      if (!named || nameIn(named) === '*') return [];
      // `typeof value` names no type itself: the types of the value count.
      return isValue && named !== place ? this.namedBy(named) : [named];
    });
  }

  #find(path: string, name: string): Place | undefined {
    if (name.includes('#'))
      return this.#origin(`${join(dirname(path), pathIn(name as Place))}#${nameIn(name as Place)}`);
    const { declared, imported } = this.#module(path);
    const place = imported.get(name) ?? (declared.has(name) ? (`${path}#${name}` as const) : undefined);
    return place && this.#origin(place);
  }

  /** Follows names that are passed on to the file that declares them. */
  #origin(place: Place): Place {
    const { declared, exported, imported } = this.#module(pathIn(place));
    const name = nameIn(place);
    const next = exported.get(name) ?? imported.get(name);
    return next === undefined || next === place || (declared.has(name) && pathIn(next) === pathIn(place))
      ? (next ?? place)
      : this.#origin(next);
  }

  #module(path: string): Module {
    const known = this.#modules.get(path);
    if (known) return known;
    const { program } = parseSync(path, readFileSync(path, 'utf8'), { lang: 'dts', sourceType: 'module' });
    const module = moduleOf(path, program.body as unknown as readonly Node[]);
    this.#modules.set(path, module);
    return module;
  }
}

function moduleOf(path: string, body: readonly Node[]): Module {
  const declared = new Map<string, Node[]>();
  const imported = new Map<string, Place>();
  const exported = new Map<string, Place>();
  for (const node of body) {
    const source = sourceOf(path, node);
    if (node.type === 'ImportDeclaration' && source) {
      for (const each of listOf(node.specifiers)) {
        const name = each.type === 'ImportSpecifier' ? textOf(each.imported) : '*';
        imported.set(textOf(each.local), `${source}#${name}`);
      }
    }
    const declaration = (node.type === 'ExportNamedDeclaration' ? node.declaration : node) as Node | null;
    for (const [name, each] of declaration ? declarations(declaration) : []) {
      declared.set(name, [...(declared.get(name) ?? []), each]);
      if (node.type === 'ExportNamedDeclaration') exported.set(name, `${path}#${name}`);
    }
    if (node.type === 'ExportNamedDeclaration') {
      for (const each of listOf(node.specifiers)) {
        exported.set(textOf(each.exported), `${source ?? path}#${textOf(each.local)}`);
      }
    }
  }
  return { declared, imported, exported };
}

function declarations(node: Node): [string, Node][] {
  if (node.type === 'VariableDeclaration') return listOf(node.declarations).map((each) => [textOf(each.id), each]);
  return isNode(node.id) ? [[textOf(node.id), node]] : [];
}

/** The file of the package that a statement imports from; none for other packages. */
function sourceOf(path: string, { source }: Node): string | undefined {
  const specifier = isNode(source) ? String(source.value) : '';
  return specifier.startsWith('.') ? join(dirname(path), specifier.replace(/\.ts$/, '.d.ts')) : undefined;
}

interface Named {
  readonly name: string;
  readonly isValue: boolean;
}

/** The names of types in a declaration, without its type parameters. A type of `import('./file.ts')` is `./file.d.ts#Name`. */
function* namesIn(value: unknown, parameters: ReadonlySet<string>): Generator<Named> {
  if (Array.isArray(value)) for (const each of value) yield* namesIn(each, parameters);
  if (!isNode(value)) return;
  const inner = new Set([...parameters, ...parametersOf(value)]);
  const name = nameOf(value);
  if (name !== undefined && !inner.has(name)) yield { name, isValue: value.type === 'TSTypeQuery' };
  for (const [field, each] of Object.entries(value)) {
    if (field !== 'parent') yield* namesIn(each, inner);
  }
}

/** The names that a node binds for what stands in it: type parameters, `infer`, the key of a mapped type. */
function parametersOf(node: Node): string[] {
  if (node.type === 'TSMappedType') return [textOf(node.key)];
  if (node.type === 'TSConditionalType') return [...inferred(node.extendsType)];
  const { typeParameters } = node;
  return isNode(typeParameters) ? listOf(typeParameters.params).map(({ name }) => textOf(name)) : [];
}

function* inferred(value: unknown): Generator<string> {
  if (Array.isArray(value)) for (const each of value) yield* inferred(each);
  if (!isNode(value)) return;
  if (value.type === 'TSInferType' && isNode(value.typeParameter)) yield textOf(value.typeParameter.name);
  for (const each of Object.values(value)) yield* inferred(each);
}

function nameOf(node: Node): string | undefined {
  if (node.type === 'TSTypeReference') return rootOf(node.typeName);
  if (node.type === 'TSTypeQuery') return rootOf(node.exprName);
  if (node.type === 'TSInterfaceHeritage' || node.type === 'TSClassImplements') return rootOf(node.expression);
  if (node.type === 'ClassDeclaration') return rootOf(node.superClass);
  if (node.type !== 'TSImportType') return undefined;
  const specifier = String((node.source as Node).value);
  return specifier.startsWith('.')
    ? `${specifier.replace(/\.ts$/, '.d.ts')}#${rootOf(node.qualifier) ?? '*'}`
    : undefined;
}

/** The first name of `Name` or of `Space.Name`. */
function rootOf(value: unknown): string | undefined {
  if (!isNode(value)) return undefined;
  return value.type === 'TSQualifiedName' ? rootOf(value.left) : textOf(value) || undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
}

function listOf(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  const { name, value: text } = (isNode(value) ? value : {}) as { name?: unknown; value?: unknown };
  return typeof value === 'string' ? value : String(name ?? text ?? '');
}

function pathIn(place: Place): string {
  return place.slice(0, place.lastIndexOf('#'));
}

function nameIn(place: Place): string {
  return place.slice(place.lastIndexOf('#') + 1);
}
