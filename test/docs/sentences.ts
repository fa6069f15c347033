/** The paragraphs and the items of lists of a page, each in one line. Code, tables, headings and comments are left out. */
export function textsOf(page: string): string[] {
  const texts: string[] = [];
  let isOpen = false;
  const prose = page.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/<!--[\s\S]*?-->/g, '');
  for (const line of prose.split('\n').map((each) => each.trim())) {
    const isProse = line !== '' && !/^[|#<>!]/.test(line);
    const item = /^(?:[*-]|\d+\.) (.*)$/.exec(line)?.[1];
    if (isProse && isOpen && item === undefined) texts.push(`${texts.pop()} ${line}`);
    else if (isProse) texts.push(item ?? line);
    isOpen = isProse;
  }
  return texts;
}

/** The sentences of a page. The address of a link is no part of its sentence. */
export function sentencesOf(page: string): string[] {
  return textsOf(page).flatMap((text) =>
    text
      .replaceAll(/\]\([^)]*\)/g, ']')
      .split(/(?<=[.!?][)"*\]]{0,2})\s+(?=[^a-z])/)
      .filter((sentence) => sentence !== ''),
  );
}

/** How many words a sentence has. A sign alone, as `=`, is none. */
export const wordCount = (sentence: string): number =>
  sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** The words of a page that are prose: without code, also that in a line. */
export const proseOf = (page: string): string =>
  page.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '');
