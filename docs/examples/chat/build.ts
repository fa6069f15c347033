// Bundles the page into one file: node build.ts [folder]
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const [folder = '.pawl/chat'] = process.argv.slice(2);

const bundle = await rolldown({
  input: fileURLToPath(new URL('page/main.tsx', import.meta.url)),
  platform: 'browser',
  logLevel: 'silent', // React’s own directives; errors are thrown
  // As Node finds it: in the repository of Pawl these are its sources.
  resolve: { alias: { 'pawl/client': fileURLToPath(import.meta.resolve('pawl/client')) } },
  transform: { define: { 'process.env.NODE_ENV': '"production"' } },
});
await bundle.write({ file: `${folder}/page.js`, minify: true });
await bundle.close();
