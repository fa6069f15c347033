/** What stands between the braces; anything else there is no name, and so an unknown one. */
const placeholder = /\{\{([^{}]*)\}\}/g;
const dottedName = /^\s*\.([A-Za-z_][A-Za-z0-9_]*)\s*$/;

/** What stands between two pairs of braces of a template; `name` is absent where it is none. */
export interface Placeholder {
  readonly text: string;
  readonly name?: string;
}

/** What a template refers to, in order. */
export function placeholdersOf(template: string): readonly Placeholder[] {
  return Array.from(template.matchAll(placeholder), ([, text = '']) => {
    const name = dottedName.exec(text)?.[1];
    return name === undefined ? { text } : { text, name };
  });
}

/**
 * Fills a prompt in: `{{.name}}` becomes the value of that name. There is nothing else: no code, no paths. A value is
 * never looked at again, so that braces in it stay as they are. Unknown names become empty; `{{` without `}}` is text.
 * @param values by name; only own properties count
 * @param warn told once of each name that is unknown, and of braces that are not closed
 * @example fillTemplate('From {{.survey}} answer {{.Query}}', { survey: 'notes', Query: 'why?' }) // 'From notes answer why?'
 */
export function fillTemplate(
  template: string,
  values: { readonly [name: string]: string },
  warn: (problem: string) => void = () => {},
): string {
  const unknown = new Set<string>();
  const filled = template.replace(placeholder, (_, inner: string) => {
    const name = dottedName.exec(inner)?.[1];
    if (name !== undefined && Object.hasOwn(values, name)) return values[name] ?? '';
    unknown.add(inner.trim());
    return '';
  });
  for (const name of unknown) warn(`{{${name}}} is no known name; it is left empty`);
  // Split, not cut out: a brace before a placeholder and one behind it are no pair.
  if (template.split(placeholder).some((text, i) => i % 2 === 0 && text.includes('{{')))
    warn('{{ without }} is taken as text');
  return filled;
}
