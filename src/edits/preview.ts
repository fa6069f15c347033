import { isObject } from '../values/json.ts';
import { type ProposedWrites, proposedWritesOf, type WriteSnapshot } from './proposed-write.ts';
import { plainName } from './root/paths.ts';
import { Root } from './root/root.ts';

/** A file now, and with the changes of an answer. */
export interface PreviewedFile {
  /** Relative to the root, with forward slashes. */
  readonly path: string;
  /** Its current bytes; null = there is no such file. */
  readonly before: Uint8Array | null;
  /** Its new text; null = it would be deleted. */
  readonly after: string | null;
  /** Why a person should read it: other programs execute or obey it automatically. Absent for other files. */
  readonly warning?: string;
}

/**
 * Returns what `applyWrites` would change in the current files, to be shown to a user. It does not compare the files with what
 * the model read, and writes nothing.
 * @throws {WRITE_OUTSIDE_ROOT} {WRITE_FAILED} as `applyWrites`
 */
export async function previewWrites(
  response: ProposedWrites,
  { root }: { readonly root: string },
): Promise<readonly PreviewedFile[]> {
  const proposedWrites = proposedWritesOf('previewWrites', response);
  const opened = await Root.open(root);
  const files: PreviewedFile[] = [];
  for (const write of proposedWrites) {
    files.push(await previewOf(opened, write));
  }
  return files;
}

/** Returns the preview of one proposed write: the file before and after it, and what to be warned of. @internal */
export async function previewOf(root: Root, write: WriteSnapshot): Promise<PreviewedFile> {
  const { path, stats } = await root.file(write.path);
  await root.checkAllowed(path);
  const before = (await root.read(path)) ?? null;
  const after = write.delete ? null : write.content;
  const warning = warningFor({ path, before, after, mode: stats?.mode });
  return { path, before, after, ...(warning === undefined ? {} : { warning }) };
}

/** Files and folders that other programs execute or obey automatically, and how. */
const PLACES: readonly (readonly [place: RegExp, by: string])[] = [
  [/^(.*\/)?(\.husky|\.githooks|\.hooks)\//, 'Git runs it as a hook'],
  [
    /^(.*\/)?(lefthook\.ya?ml|\.lefthook\.ya?ml|\.pre-commit-config\.ya?ml|\.lintstagedrc(\.\w+)?)$/,
    'Git hooks obey it',
  ],
  [/^\.github\//, 'GitHub executes files in that folder'],
  [
    /^(\.gitlab-ci\.ya?ml|azure-pipelines\.ya?ml|jenkinsfile|\.travis\.ya?ml)$|^\.(circleci|gitlab|buildkite)\//,
    'the CI executes it',
  ],
  [/^(.*\/)?\.(vscode|idea|devcontainer|zed)\//, 'editors execute files in that folder'],
  [
    /^(.*\/)?(gnumakefile|makefile|justfile|\.justfile|taskfile\.ya?ml|[^/]*\.mk)$/,
    '`make` and similar programs execute it',
  ],
  [
    /^(.*\/)?(binding\.gyp|\.pnpmfile\.cjs|pnpmfile\.js|\.yarnrc\.ya?ml|\.yarnrc)$/,
    'package managers execute it, or files that it names',
  ],
  [/^(.*\/)?(\.gitattributes|\.gitmodules)$/, 'Git may execute files that it names'],
  [/^(.*\/)?\.gitignore$/, 'it says which files models may read'],
];

/** A change to check. */
interface ProposedChange {
  /** Relative to the root. */
  readonly path: string;
  /** null = there is no file. */
  readonly before: Uint8Array | null;
  /** null = it would be deleted. */
  readonly after: string | null;
  /** Permissions of the existing file. */
  readonly mode?: number | undefined;
}

/** Why a person should read a change before it is applied: a program would execute it automatically. Undefined for others. */
function warningFor({ path, before, after, mode = 0 }: ProposedChange): string | undefined {
  const plain = path.split('/').map(plainName).join('/');
  const [, by] = PLACES.find(([place]) => place.test(plain)) ?? [];
  if (by !== undefined) return by;
  if (/^(.*\/)?package\.json$/.test(plain) && scriptsIn(before) !== scriptsIn(after))
    return 'it changes the scripts of package.json, which `npm install` may execute';
  return before !== null && after !== null && (mode & 0o111) !== 0 ? 'the file is executable' : undefined;
}

/** The scripts that npm executes, as a comparable text; an unreadable text differs from all others. */
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
