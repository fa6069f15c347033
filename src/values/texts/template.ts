/** The text between the braces. Anything that is not a name is an unknown name. */
const placeholder = /\{\{([^{}]*)\}\}/g;
const dottedName = /^\s*\.([A-Za-z_][A-Za-z0-9_]*)\s*$/;

/** The text between two pairs of braces of a template; `name` is absent if the text is not a name. */
export interface Placeholder {
  readonly text: string;
  readonly name?: string;
}

/** Returns the placeholders `{{.name}}` of a template, in order. */
export function placeholdersOf(template: string): readonly Placeholder[] {
  return Array.from(template.matchAll(placeholder), ([, text = '']) => {
    const name = dottedName.exec(text)?.[1];
    return name === undefined ? { text } : { text, name };
  });
}

/**
 * Fills a prompt template in: `{{.name}}` becomes the value of that name. A template has no code and no paths. Values are
 * not expanded again, so braces in them stay. Unknown names become empty; `{{` without `}}` is text.
 * @param values by name; only own properties count
 * @param warn gets each unknown name once, and a warning for braces that are not closed
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
  for (const name of unknown) warn(`{{${name}}} is not a known name; it is left empty`);
  // Splits instead of cutting out: a brace before a placeholder and one after it are not a pair.
  if (template.split(placeholder).some((text, i) => i % 2 === 0 && text.includes('{{')))
    warn('{{ without }} is taken as text');
  return filled;
}
