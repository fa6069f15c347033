// Writes the generated pages: `npm run docs`.
import { writeFileSync } from 'node:fs';
import { lifecyclePage } from './lifecycle.ts';

writeFileSync(new URL('../../docs/run-lifecycle.md', import.meta.url), lifecyclePage());
