import { isObject } from '../values/json.ts';
import type { ProposedWrites, WriteSnapshot } from './proposed-write.ts';
import { plainName } from './root/paths.ts';
import { Root } from './root/root.ts';

/** A file as it is, and as an answer would have it. */
export interface PreviewedFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  /** Its bytes now; null = there is no such file. */
  readonly before: Uint8Array | null;
  /** Its new text; null = it is to go. */
  readonly after: string | null;
  /** Why a person should read it: other programs execute or obey that file by themselves. Absent for any other file. */
  readonly warning?: string;
}

/**
 * What `applyWrites` would do to the files as they are now, for whoever wants to show it; nothing is compared with what the model
 * read, and nothing is written.
 * @throws {WriteOutsideRootError} {WriteFailedError} as `applyWrites`
 */
export async function previewWrites(
  { proposedWrites = [] }: ProposedWrites,
  { root }: { readonly root: string },
): Promise<readonly PreviewedFile[]> {
  const opened = await Root.open(root);
  const files: PreviewedFile[] = [];
  for (const write of proposedWrites) {
    files.push(await previewOf(opened, write));
  }
  return files;
}

/** The preview of one proposed write: the file before and after it, and what to be warned of. @internal */
export async function previewOf(root: Root, write: WriteSnapshot): Promise<PreviewedFile> {
  const { path, stats } = await root.file(write.path);
  await root.checkAllowed(path);
  const before = (await root.read(path)) ?? null;
  const after = write.delete ? null : write.content;
  const warning = warningFor({ path, before, after, mode: stats?.mode });
  return { path, before, after, ...(warning === undefined ? {} : { warning }) };
}

/** Files and folders that other programs execute or obey by themselves, and which. */
const PLACES: readonly (readonly [place: RegExp, by: string])[] = [
  [/^(.*\/)?(\.husky|\.githooks|\.hooks)\//, 'Git runs it as a hook'],
  [
    /^(.*\/)?(lefthook\.ya?ml|\.lefthook\.ya?ml|\.pre-commit-config\.ya?ml|\.lintstagedrc(\.\w+)?)$/,
    'Git hooks obey it',
  ],
  [/^\.github\//, 'GitHub executes what is in that folder'],
  [
    /^(\.gitlab-ci\.ya?ml|azure-pipelines\.ya?ml|jenkinsfile|\.travis\.ya?ml)$|^\.(circleci|gitlab|buildkite)\//,
    'the CI executes it',
  ],
  [/^(.*\/)?\.(vscode|idea|devcontainer|zed)\//, 'editors execute what is in that folder'],
  [/^(.*\/)?(gnumakefile|makefile|justfile|\.justfile|taskfile\.ya?ml|[^/]*\.mk)$/, '`make` and its like execute it'],
  [
    /^(.*\/)?(binding\.gyp|\.pnpmfile\.cjs|pnpmfile\.js|\.yarnrc\.ya?ml|\.yarnrc)$/,
    'package managers execute it, or what it names',
  ],
  [/^(.*\/)?(\.gitattributes|\.gitmodules)$/, 'Git may execute what it names'],
  [/^(.*\/)?\.gitignore$/, 'it says which files models may read'],
];

/** What is known of a change. */
interface ProposedChange {
  /** Relative to the root. */
  readonly path: string;
  /** null = there is no file. */
  readonly before: Uint8Array | null;
  /** null = it is to go. */
  readonly after: string | null;
  /** Permissions of the file that is there. */
  readonly mode?: number | undefined;
}

/** Why somebody should read a change before it is applied: it would be executed without being asked for. Undefined for others. */
function warningFor({ path, before, after, mode = 0 }: ProposedChange): string | undefined {
  const plain = path.split('/').map(plainName).join('/');
  const [, by] = PLACES.find(([place]) => place.test(plain)) ?? [];
  if (by !== undefined) return by;
  if (/^(.*\/)?package\.json$/.test(plain) && scriptsIn(before) !== scriptsIn(after))
    return 'it changes the scripts of package.json, which `npm install` may execute';
  return before !== null && after !== null && (mode & 0o111) !== 0 ? 'the file is executable' : undefined;
}

/** What npm executes, as a text to compare; a text that cannot be read is different from all others. */
function scriptsIn(content: Uint8Array | string | null): string {
  if (content === null) return '{}';
  const text = typeof content === 'string' ? content : Buffer.from(content).toString();
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify((isObject(value) && value.scripts) || {});
  } catch {
    return text;
  }
}
