import { extname } from 'node:path';
import { stopWords } from './stop-words.ts';

/** What can be said of a text without understanding it. */
export interface Facts {
  readonly lines: number;
  readonly words: number;
  /** '' when it begins with no prose. */
  readonly firstSentence: string;
  /** Of Markdown. */
  readonly headings: readonly string[];
  /** Names that a source file offers to others. */
  readonly exports: readonly string[];
  /** How often each significant word occurs. */
  readonly counts: ReadonlyMap<string, number>;
}

const prose = ['', '.md', '.markdown', '.mdx', '.txt', '.rst', '.adoc', '.org', '.tex', '.log'];
const markdown = ['.md', '.markdown', '.mdx'];
const javascript =
  /^export\s+(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\*?|class|const|let|var|interface|type|enum|namespace)\s+([\w$]+)/gm;
const publicNames: Readonly<Record<string, RegExp>> = {
  '.ts': javascript,
  '.mts': javascript,
  '.tsx': javascript,
  '.js': javascript,
  '.mjs': javascript,
  '.jsx': javascript,
  '.py': /^(?:async\s+)?(?:def|class)\s+([A-Za-z]\w*)/gm,
  '.go': /^(?:func(?:\s+\([^)]*\))?|type|var|const)\s+([A-Z]\w*)/gm,
  '.rs': /^pub\s+(?:async\s+|unsafe\s+|const\s+)*(?:fn|struct|enum|trait|type|mod|static)\s+(\w+)/gm,
  '.java': /^\s*public\s+(?:(?:abstract|final|static|sealed)\s+)*(?:class|interface|record|enum)\s+(\w+)/gm,
};

/** @param file its path; the extension says how to read it */
export function factsOf(file: string, text: string): Facts {
  const extension = extname(file).toLowerCase();
  const words = text.match(/\p{L}[\p{L}\p{N}]*(?:['’-]\p{L}+)*|\p{N}+/gu) ?? [];
  return {
    lines: text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0),
    words: words.length,
    firstSentence: sentenceOf(prose.includes(extension) ? proseOf(text) : commentOf(text)),
    headings: markdown.includes(extension) ? headingsOf(text) : [],
    exports: exportsOf(extension, text),
    counts: countsOf(words),
  };
}

/** The most frequent significant words: more often first, then by name. */
export function topTerms(counts: ReadonlyMap<string, number>, most: number): [term: string, count: number][] {
  const repeated = [...counts].filter(([, count]) => count > 1);
  return repeated.sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, most);
}

function countsOf(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) {
    const term = word.toLowerCase();
    if (term.length >= 4 && /^\p{L}/u.test(term) && !stopWords.has(term)) counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  return counts;
}

function withoutCodeBlocks(text: string): string {
  return text.replace(/^(`{3,}|~{3,})[\s\S]*?(?:^\1|$(?![\s\S]))/gm, '');
}

function headingsOf(text: string): string[] {
  return [...withoutCodeBlocks(text).matchAll(/^#{1,6} +(.+?)[ #]*$/gm)].map(([, heading = '']) => plain(heading));
}

function exportsOf(extension: string, text: string): string[] {
  const pattern = publicNames[extension];
  const declared = pattern ? [...text.matchAll(pattern)].map(([, name = '']) => name) : [];
  if (pattern !== javascript) return [...new Set(declared)];
  const listed = [...text.matchAll(/^export\s+(?:type\s+)?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
    names.split(','),
  );
  const renamed = listed.map(
    (name) =>
      name
        .trim()
        .replace(/^type\s+/, '')
        .split(/\s+as\s+/)
        .at(-1) ?? '',
  );
  return [...new Set([...declared, ...renamed])].filter((name) => name !== '');
}

/** The first paragraph that is neither heading, table, list, image nor markup. */
function proseOf(text: string): string {
  const paragraphs = withoutCodeBlocks(text.replace(/^---\n[\s\S]*?\n---\n/, '')).split(/\n\s*\n/);
  const first = paragraphs
    .map((paragraph) => paragraph.replace(/^#.*\n/gm, '').trim())
    .find((paragraph) => {
      return /^[^#|<>![\]*+\-=~:.]/.test(paragraph) && /\p{L}+\s+\p{L}+/u.test(paragraph);
    });
  return plain(first ?? '');
}

/** The first run of comment lines that says something. */
function commentOf(text: string): string {
  const block: string[] = [];
  for (const line of text.split('\n').slice(0, 200)) {
    const said = /^\s*(?:\/\/+|\/\*+|\*+\/?|#+(?!!)|--|;+|"""|''')\s?(.*?)(?:\*\/|""")?\s*$/.exec(line)?.[1];
    if (said !== undefined && /\p{L}+\s+\p{L}+/u.test(said)) block.push(said);
    else if (block.length > 0) break;
  }
  return plain(block.join(' '));
}

function plain(text: string): string {
  const unlinked = text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]|(?<!\w)_|_(?!\w)|<[^>]+>/g, '');
  return unlinked.replace(/\s+/g, ' ').trim();
}

function sentenceOf(text: string): string {
  const sentence = /^.+?[.!?](?=\s|$)/.exec(text)?.[0] ?? text;
  return sentence.length <= 200 ? sentence : `${sentence.slice(0, 199)}…`;
}
