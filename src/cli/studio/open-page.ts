import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makePrivateFolder, stateFolder, writePrivate } from '../open/private-files.ts';

/** How long a browser has to read the file, ms. */
const KEPT_MS = 30_000;

/** A browser that was asked to open a page. */
export interface Opening {
  /** Why no browser could be started; undefined if one was. */
  readonly failed: Promise<string | undefined>;
  /** Deletes the file. */
  end(): void;
}

/**
 * Opens an address with a token in the browser of this user. The command line of a process can be read by all users, so the
 * browser gets a file instead, which only this user can read, and which is deleted soon.
 */
export function openPage(address: string, home: string = stateFolder()): Opening {
  const folder = join(home, 'studio-tokens');
  const path = join(folder, `open-${randomUUID()}.html`);
  makePrivateFolder(folder);
  removeLeft(folder);
  writePrivate(path, pageFor(address));
  const end = () => {
    clearTimeout(timer);
    rmSync(path, { force: true });
  };
  const timer = setTimeout(end, KEPT_MS).unref();
  return { failed: startOpener(pathToFileURL(path).href), end };
}

/** A Studio that was killed has left its file, which names a token. */
function removeLeft(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!/^open-[0-9a-f-]{36}\.html$/.test(name)) continue;
    const path = join(folder, name);
    const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (Date.now() - written > KEPT_MS) rmSync(path, { force: true });
  }
}

/** The address has only characters of URLs; the token in it is base64url. */
function pageFor(address: string): string {
  const text = JSON.stringify(address).replaceAll('<', '\\u003c');
  return `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Pawl Studio</title>
<script>location.replace(${text})</script>
`;
}

const openers: { readonly [platform: string]: readonly [string, ...string[]] } = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

function startOpener(url: string): Promise<string | undefined> {
  const [program, ...args] = openers[process.platform] ?? ['xdg-open'];
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
    child.once('error', ({ message }) => resolve(message));
    child.once('exit', (code) => resolve(code === 0 || code === null ? undefined : `${program} exited with ${code}`));
    child.unref();
  });
}
