import { isObject } from './json.ts';
import type { ImageInput, ImagePart } from './request.ts';

/**
 * An image as the file part of a message: plain JSON, bytes as base64.
 * @param where names it in the error, for example `images[0]`
 * @throws {TypeError} when it has no media type, or no data
 */
export function imagePartOf(image: ImageInput, where: string): ImagePart {
  if (!isObject(image) || typeof image.mediaType !== 'string') throw new TypeError(`${where} needs a mediaType`);
  const { mediaType, data } = image as ImageInput;
  if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
    throw new TypeError(`${where}.data must be bytes or their base64`);
  }
  const base64 = typeof data === 'string' ? data : Buffer.from(data).toString('base64');
  return { type: 'file', mediaType, data: { type: 'data', data: base64 } };
}
