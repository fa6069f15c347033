import { lstat, readFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { orAbsent, systemCode } from '../../files/errors.ts';
import { IgnoreRules, type RuleBudget, TooManyStepsError } from './ignore-rules.ts';
import { isSecretPath } from './secret-names.ts';

/** A larger `.gitignore` is not read: its whole folder is then off limits. */
const MAX_RULES_BYTES = 2 ** 18;
/** How many parent folders of a root are searched for its repository. */
const MAX_ABOVE = 64;

/** The most steps for one path, and for a whole listing: a hostile clone must not block the process. */
const PATH_STEPS = 2_000_000;
const LISTING_STEPS = 50_000_000;
/** After this many steps the event loop gets a turn. */
const TURN_STEPS = 500_000;

/** The rules of a folder, and the folder relative to the uppermost one. */
interface FolderRules {
  readonly folder: string;
  readonly rules: IgnoreRules;
}

/**
 * Decides which files models may neither read nor change: likely secrets, by their names, and files that Git ignores. The
 * rules come from the `.gitignore` of each folder from the top of the repository down, and from `.git/info/exclude`.
 */
export class OffLimits {
  /** The uppermost folder whose rules count. */
  readonly #top: string;
  /** The path from there to the root, with a slash at its end; '' if they are the same. */
  readonly #prefix: string;
  readonly #isFolding: boolean;

  private constructor(top: string, prefix: string, isFolding: boolean) {
    this.#top = top;
    this.#prefix = prefix;
    this.#isFolding = isFolding;
  }

  /**
   * Reads what is off limits in a root, by its repository and the `.gitignore` files above it.
   * @param root without links
   * @param isFolding whether the file system ignores case in names
   */
  static async of(root: string, isFolding = ['darwin', 'win32'].includes(process.platform)): Promise<OffLimits> {
    const own = new OffLimits(root, '', isFolding);
    const top = await topOf(root);
    if (top === undefined || top === root) return own;
    const path = relative(top, root).split(sep).join('/');
    const above = new OffLimits(top, '', isFolding);
    // A host that names an ignored folder as the root wants models to read it.
    const isIgnored = await above.#isIgnored(path, { isFolder: true, budget: { steps: PATH_STEPS } });
    return isIgnored ? own : new OffLimits(top, `${path}/`, isFolding);
  }

  /**
   * Why a path is off limits, as the end of a sentence; undefined if it is not.
   * @param path relative to the root; '' is the root
   */
  async reason(path: string, isFolder = false): Promise<string | undefined> {
    if (path === '') return undefined;
    if (isSecretPath(path)) return 'a file or folder of that name is likely to hold secrets';
    try {
      const at = { isFolder, budget: { steps: PATH_STEPS } };
      return (await this.#isIgnored(this.#prefix + path, at)) ? 'Git ignores it (.gitignore)' : undefined;
    } catch (error) {
      if (error instanceof TooManyStepsError) return 'the patterns of its .gitignore take too long to compare';
      throw error;
    }
  }

  /**
   * For a listing: checks one entry after the other. The folder of each must not be off limits itself.
   * @returns undefined after the patterns have taken too long
   */
  listing(): (entry: { readonly path: string; readonly isFolder: boolean }) => Promise<boolean | undefined> {
    let left = LISTING_STEPS;
    let sinceTurn = 0;
    const known = new Map<string, readonly FolderRules[]>();
    return async ({ path, isFolder }) => {
      if (isSecretPath(path)) return true;
      const whole = this.#prefix + path;
      const folder = folderOf(whole);
      const rules = known.get(folder) ?? (await this.#rulesFor(folder));
      // Entries come folder by folder.
      if (!known.has(folder)) known.clear();
      known.set(folder, rules);
      const budget = { steps: PATH_STEPS };
      const isIgnored = unlessTooLong(() => isIgnoredBy(rules, whole, { isFolder, budget }));
      const spent = PATH_STEPS - budget.steps;
      left -= spent;
      sinceTurn += spent;
      if (left < 0) return undefined;
      if (sinceTurn > TURN_STEPS) {
        sinceTurn = 0;
        await nextTurn();
      }
      return isIgnored ?? true;
    };
  }

  /** Whether a path, or a parent folder, is ignored: below an ignored folder nothing can be included again. */
  async #isIgnored(path: string, { isFolder, budget }: { isFolder: boolean; budget: RuleBudget }): Promise<boolean> {
    const names = path.split('/');
    let rules: readonly FolderRules[] = [];
    for (let i = 0; i < names.length; i++) {
      rules = await this.#withRulesOf(names.slice(0, i).join('/'), rules);
      const at = { isFolder: isFolder || i + 1 < names.length, budget };
      if (isIgnoredBy(rules, names.slice(0, i + 1).join('/'), at)) return true;
    }
    return false;
  }

  async #rulesFor(folder: string): Promise<readonly FolderRules[]> {
    const names = folder === '' ? [] : folder.split('/');
    let rules: readonly FolderRules[] = await this.#withRulesOf('', []);
    for (let i = 1; i <= names.length; i++) rules = await this.#withRulesOf(names.slice(0, i).join('/'), rules);
    return rules;
  }

  /** The rules of a folder, followed by those of its parents. Those of the repository itself are last. */
  async #withRulesOf(folder: string, above: readonly FolderRules[]): Promise<readonly FolderRules[]> {
    const places = [join(this.#top, folder, '.gitignore')];
    if (folder === '') places.push(join(this.#top, '.git', 'info', 'exclude'));
    const texts = await Promise.all(places.map(rulesIn));
    const own = texts.filter((text) => text !== undefined);
    return [...own.map((text) => ({ folder, rules: new IgnoreRules(text, this.#isFolding) })), ...above];
  }
}

function isIgnoredBy(
  all: readonly FolderRules[],
  path: string,
  { isFolder, budget }: { readonly isFolder: boolean; readonly budget: RuleBudget },
): boolean {
  for (const { folder, rules } of all) {
    const verdict = rules.match(folder === '' ? path : path.slice(folder.length + 1), isFolder, budget);
    if (verdict) return verdict === 'ignored';
  }
  return false;
}

/** Undefined if the patterns take too long. */
function unlessTooLong(ask: () => boolean): boolean | undefined {
  try {
    return ask();
  } catch (error) {
    if (error instanceof TooManyStepsError) return undefined;
    throw error;
  }
}

const folderOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('/')));

/** Git does not follow a link to such a file. If it is too large, everything below its folder is ignored. */
async function rulesIn(path: string): Promise<string | undefined> {
  try {
    const stats = await lstat(path);
    if (!stats.isFile()) return undefined;
    return stats.size > MAX_RULES_BYTES ? '*' : await readFile(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return undefined;
    throw error;
  }
}

/** The top of the repository that a folder is in. */
async function topOf(root: string): Promise<string | undefined> {
  for (let folder = root, i = 0; i < MAX_ABOVE; folder = dirname(folder), i++) {
    if (await orAbsent(lstat(join(folder, '.git')))) return folder;
    if (folder === dirname(folder)) return undefined;
  }
  return undefined;
}
