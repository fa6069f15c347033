// The build writes the page itself in the place of this module; from the sources it comes out of `dist`, once that is built.

/** The files of the page, by their names. */
type PageFiles = { readonly [name: string]: string };

/** Reads the files of the page. @throws {Error} before the first build */
export async function pageFiles(): Promise<PageFiles> {
  const built = new URL('../../dist/src/studio/page-files.js', import.meta.url).href;
  try {
    return await (await import(built)).pageFiles();
  } catch (cause) {
    throw new Error('the page of Studio is not built: npm run build', { cause });
  }
}
