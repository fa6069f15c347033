// Bundles the page of Studio, and writes it as a module: node test/toolchain/build-studio.ts. The package has the page ready.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transform } from 'lightningcss';
import { rolldown } from 'rolldown';

const page = fileURLToPath(new URL('../../src/studio/page', import.meta.url));
const target = fileURLToPath(new URL('../../dist/src/studio', import.meta.url));

/** Makes the files of the page, as browsers get them. */
export async function madePage(): Promise<{ readonly [name: string]: string }> {
  return {
    'index.html': readFileSync(`${page}/index.html`, 'utf8').replaceAll(/\n */g, ''),
    'studio.css': styles(),
    'studio.js': await script(),
  };
}

/** Writes `dist/src/studio/page-files.js`, which the handler imports at its first request. */
export async function buildStudioPage(): Promise<void> {
  const files = await madePage();
  mkdirSync(target, { recursive: true });
  const text = `const files = ${JSON.stringify(files, null, 1)};\nexport async function pageFiles() {\n  return files;\n}\n`;
  writeFileSync(`${target}/page-files.js`, text);
}

/** The tokens first, then each part. */
function styles(): string {
  const parts = globSync('**/*.css', { cwd: page }).toSorted();
  const text = [...new Set(['tokens.css', 'frame.css', ...parts])]
    .map((name) => readFileSync(`${page}/${name}`, 'utf8'))
    .join('\n');
  return transform({ filename: 'studio.css', code: Buffer.from(text), minify: true }).code.toString();
}

async function script(): Promise<string> {
  const bundle = await rolldown({
    input: `${page}/main.tsx`,
    platform: 'browser',
    tsconfig: `${page}/tsconfig.json`,
    // The page has `h` anyway, and its calls are shorter than those of the JSX runtime.
    transform: {
      jsx: { runtime: 'classic', pragma: 'h', pragmaFrag: 'Fragment' },
      inject: { h: ['preact', 'h'], Fragment: ['preact', 'Fragment'] },
    },
  });
  const { output } = await bundle.generate({ minify: true, comments: false, codeSplitting: false });
  await bundle.close();
  return output[0].code;
}

if (import.meta.main) await buildStudioPage();
