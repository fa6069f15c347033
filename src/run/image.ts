import { isObject } from '../values/json.ts';
import { checkKeys, type KnownKeys } from '../values/known-options.ts';
import type { ImageInput, ImagePart } from './request.ts';

/** What is here and nowhere else: no provider can fetch it. */
const localProtocols: readonly string[] = ['file:', 'blob:', 'data:', 'node:'];

/**
 * An image as the file part of a message: plain JSON, bytes as base64, a URL as a string.
 * @param where names it in the error, for example `images[0]`
 * @throws {TypeError} when it has no media type, or no data that a provider could come by
 */
export function imagePartOf(image: ImageInput, where: string): ImagePart {
  if (!isObject(image) || typeof image.mediaType !== 'string') throw new TypeError(`${where} needs a mediaType`);
  checkKeys(image, { mediaType: true, data: true } satisfies KnownKeys<ImageInput>, { of: where });
  const { mediaType, data } = image as ImageInput;
  return { type: 'file', mediaType, data: dataOf(data, where) };
}

function dataOf(data: unknown, where: string): ImagePart['data'] {
  if (data instanceof Uint8Array) return { type: 'data', data: Buffer.from(data).toString('base64') };
  if (data instanceof URL) return { type: 'url', url: fetchableUrl(data, `${where}.data`).href };
  if (typeof data !== 'string') throw new TypeError(`${where}.data must be bytes, their base64, or a URL`);
  // A colon is in no base64.
  if (!data.includes(':')) return { type: 'data', data };
  if (!URL.canParse(data)) throw new TypeError(`${where}.data is neither base64 nor a URL`);
  return { type: 'url', url: fetchableUrl(new URL(data), `${where}.data`).href };
}

/** A URL that a provider can fetch. @throws {TypeError} for one that leads to this process or machine */
export function fetchableUrl(url: URL, where: string): URL {
  if (!localProtocols.includes(url.protocol)) return url;
  throw new TypeError(`${where} is a ${url.protocol} URL, which no provider can fetch: pass the bytes or their base64`);
}
