/** An escape, or the text between two pairs of braces. */
const placeholder = /\{\{\{\{|\{\{([^{}]*)\}\}/g;
const dottedName = /^\s*\.([A-Za-z_][A-Za-z0-9_]*)\s*$/;

/** The text between two pairs of braces of a template; `name` is absent if the text is not a name. */
interface Placeholder {
  readonly text: string;
  readonly name?: string;
}

/** Returns the placeholders `{{.name}}` of a template, in order. */
export function placeholdersOf(template: string): readonly Placeholder[] {
  return Array.from(template.matchAll(placeholder)).flatMap(([, text]) => {
    if (text === undefined) return [];
    const name = dottedName.exec(text)?.[1];
    return name === undefined ? { text } : { text, name };
  });
}

/**
 * Fills a prompt template in: `{{.name}}` becomes the value of that name. A template has no code and no paths. Values are
 * not expanded again, so braces in them stay. `{{{{` becomes `{{`; `{{` without `}}` is text.
 * @param values by name; only own properties count
 * @param options.unknown what a name without a value becomes: empty, or the text that stands there
 * @example fillTemplate('From {{.survey}} answer {{.Query}}', { survey: 'notes', Query: 'why?' }) // 'From notes answer why?'
 */
export function fillTemplate(
  template: string,
  values: { readonly [name: string]: string },
  { unknown }: { readonly unknown: 'empty' | 'text' },
): string {
  return template.replace(placeholder, (whole: string, inner: string | undefined) => {
    if (inner === undefined) return '{{';
    const name = dottedName.exec(inner)?.[1];
    if (name !== undefined && Object.hasOwn(values, name)) return values[name] ?? '';
    return unknown === 'text' ? whole : '';
  });
}
