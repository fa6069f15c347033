// Installs what is too large for the lockfile of all: the engines that this machine can have, and what builds the site. Where
// nothing can be installed it says so and succeeds: the tests that need it are skipped by name.
import { fileURLToPath } from 'node:url';
import { engines, whyNo } from '../engines/engines.ts';
import { install, isInstalled } from './private-package.ts';
import { whyNoSite } from './site.ts';

const folderOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const [ofEngines, ofSite] = [folderOf('test/engines'), folderOf('site')];

if (!isInstalled(ofEngines) || engines.some((engine) => whyNo(engine) !== undefined)) install(ofEngines);
if (!isInstalled(ofSite)) install(ofSite);
for (const engine of engines) console.log(`${engine}: ${whyNo(engine) ?? 'installed'}`);
console.log(`site: ${whyNoSite() ?? 'installed'}`);
