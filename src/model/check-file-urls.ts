import { readProperty } from '../values/error-data.ts';
import { isObject } from '../values/json.ts';
import type { Message } from '../values/message.ts';
import { isThenable } from '../values/thenable.ts';
import { refusedHere } from './failure.ts';
import type { Model } from './port.ts';

interface FileByUrl {
  readonly mediaType: string;
  readonly url: URL;
}

/**
 * Checks that a model accepts the files that a prompt gives by URL. Pawl refuses a URL that is not in the model's list, since
 * the model's behaviour for it is unknown. A model without a list may accept all or none. Pawl never downloads a URL: a model
 * or a user may have chosen it.
 *
 * @returns `undefined` if there is nothing to check; else a promise that rejects with a final ModelError for a file by http(s)
 *   that is not in the list
 */
export function checkFileUrls(model: Model, messages: readonly Message[]): Promise<void> | undefined {
  const files = messages.flatMap(filesByUrl);
  return files.length > 0 ? checkFiles(model, files) : undefined;
}

async function checkFiles(model: Model, files: readonly FileByUrl[]): Promise<void> {
  const supported = await askSupport(model);
  if (supported === undefined) return;
  const unsupported = files.find((file) => !isSupported(file, supported));
  if (unsupported === undefined) return;
  const { mediaType, url } = unsupported;
  // Only the host: a signed URL is a secret.
  throw refusedHere(
    `the model takes no ${mediaType} file by a URL at ${url.host} (see its supportedUrls), and Pawl downloads nothing; give the bytes of the file instead of its URL`,
  );
}

/** The files of a message that the model has not made itself. */
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

/** Returns `undefined` if the model does not say. */
async function askSupport(model: Model): Promise<ReadonlyMap<string, unknown> | undefined> {
  const declared: unknown = readProperty(model, 'supportedUrls');
  try {
    const urls = isThenable(declared) ? await declared : declared;
    return isObject(urls) && Object.keys(urls).length > 0 ? new Map(Object.entries(urls)) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * By the rules of the AI SDK: patterns match the URL in lower case, and `image/*` matches every type that begins with
 * `image/`.
 */
function isSupported({ mediaType, url }: FileByUrl, supported: ReadonlyMap<string, unknown>): boolean {
  const type = (mediaType.includes('/') ? mediaType : `${mediaType}/*`).toLowerCase();
  const text = url.href.toLowerCase();
  for (const [key, patterns] of supported) {
    const prefix = key === '*' || key === '*/*' ? '' : key.toLowerCase().replace(/\*$/, '');
    const isOfType = prefix === '' || (prefix.endsWith('/') ? type.startsWith(prefix) : type === prefix);
    // `search` ignores the `lastIndex` of a pattern with the flag `g`.
    if (isOfType && Array.isArray(patterns) && patterns.some((pattern) => text.search(pattern) >= 0)) return true;
  }
  return false;
}
