import { readProperty } from '../values/error-data.ts';
import { ModelError } from '../values/errors.ts';
import { isObject } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import { isThenable } from '../values/thenable.ts';
import type { Model } from './port.ts';

interface FileByUrl {
  readonly mediaType: string;
  readonly url: URL;
}

/**
 * Sees that a model takes the files that stand in a prompt by URL. A model that lists the URLs it takes is held to its
 * list, since what it does with another one is anybody's guess; one that lists nothing may take all or none, and answers
 * for itself. Nothing is ever downloaded here: a URL of a model's or a user's choosing is no business of this process.
 *
 * @returns `undefined` when there is nothing to check; else it rejects with a ModelError, which is final, for a file by
 *   http(s) that is not in the list
 */
export function checkFileUrls(model: Model, messages: readonly Message[]): Promise<void> | undefined {
  const files = messages.flatMap(filesByUrl);
  return files.length > 0 ? checkFiles(model, files) : undefined;
}

async function checkFiles(model: Model, files: readonly FileByUrl[]): Promise<void> {
  const supported = await supportedBy(model);
  if (supported === undefined) return;
  const unsupported = files.find((file) => !isSupported(file, supported));
  if (unsupported === undefined) return;
  const { mediaType, url } = unsupported;
  // The host alone: a signed URL is a secret.
  throw new ModelError(
    `the model takes no ${mediaType} file by a URL at ${url.host} (see its supportedUrls), and Pawl downloads nothing; give the bytes of the file instead of its URL`,
  );
}

/** The files of a message that the model has not given itself. */
function filesByUrl({ role, content }: Message): FileByUrl[] {
  if ((role !== 'user' && role !== 'tool') || typeof content === 'string') return [];
  return content.flatMap(filesIn);
}

function filesIn(part: unknown): FileByUrl[] {
  if (!isObject(part)) return [];
  const inner = readProperty(part.output, 'value');
  if (part.type === 'tool-result') return Array.isArray(inner) ? inner.flatMap(filesIn) : [];
  const url = readProperty(part.data, 'type') === 'url' ? readProperty(part.data, 'url') : undefined;
  if (part.type !== 'file' || typeof url !== 'string' || !/^https?:/i.test(url) || !URL.canParse(url)) return [];
  return [{ mediaType: String(part.mediaType), url: new URL(url) }];
}

/** `undefined` = the model does not say. */
async function supportedBy(model: Model): Promise<ReadonlyMap<string, unknown> | undefined> {
  const declared: unknown = readProperty(model, 'supportedUrls');
  try {
    const urls = isThenable(declared) ? await declared : declared;
    return isObject(urls) && Object.keys(urls).length > 0 ? new Map(Object.entries(urls)) : undefined;
  } catch {
    return undefined;
  }
}

/** By the rules of the AI SDK: patterns see the URL in lower case, and `image/*` is for all that begins with `image/`. */
function isSupported({ mediaType, url }: FileByUrl, supported: ReadonlyMap<string, unknown>): boolean {
  const type = (mediaType.includes('/') ? mediaType : `${mediaType}/*`).toLowerCase();
  const text = url.href.toLowerCase();
  for (const [key, patterns] of supported) {
    const prefix = key === '*' || key === '*/*' ? '' : key.toLowerCase().replace(/\*$/, '');
    const isOfType = prefix === '' || (prefix.endsWith('/') ? type.startsWith(prefix) : type === prefix);
    // `search` does not care where a pattern with the flag `g` left off.
    if (isOfType && Array.isArray(patterns) && patterns.some((pattern) => text.search(pattern) >= 0)) return true;
  }
  return false;
}
