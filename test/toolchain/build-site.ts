// npm run site: builds the site of docs/ into site/dist/www, after it has installed what that takes.

import { install } from './private-package.ts';
import { buildSite, siteFolder, whyNoSite } from './site.ts';

if (whyNoSite() !== undefined) {
  console.log('site: installs the packages of site/package.json, once (120 MB)');
  install(siteFolder);
}
const reason = whyNoSite();
if (reason !== undefined) {
  console.error(`site: not built: ${reason}`);
  process.exit(1);
}
const { ok } = buildSite('inherit');
console.log(
  ok ? '\nsite: built in site/dist/www; `npm --prefix site run preview` serves it' : '\nsite: not built: see above',
);
if (!ok) process.exitCode = 1;
