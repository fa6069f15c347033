// Writes the generated pages: `npm run docs`.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { cliPage } from './cli-page.ts';
import { eventsPage } from './event-table.ts';
import { httpApiPage } from './http-api.ts';
import { lifecyclePage } from './lifecycle.ts';
import { limitsPage } from './limits.ts';
import { llmsPage } from './llms.ts';
import { membersPage } from './members.ts';
import { optionsPage } from './options.ts';
import { referencePage } from './reference.ts';
import { deployFiles, deployingPage, logLinesPage, metricsPage, operationsPage } from './tables.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
writeFileSync(`${root}/docs/run-lifecycle.md`, lifecyclePage());
writeFileSync(`${root}/docs/limits.md`, limitsPage(root));
writeFileSync(`${root}/docs/options.md`, optionsPage(root));
writeFileSync(`${root}/docs/members.md`, membersPage(root));
writeFileSync(`${root}/docs/cli.md`, cliPage());
writeFileSync(`${root}/docs/http-api.md`, await httpApiPage());
writeFileSync(`${root}/docs/llms.txt`, llmsPage(root));
writeFileSync(`${root}/docs/reference.md`, referencePage(root));
writeFileSync(`${root}/docs/events.md`, eventsPage(root));
writeFileSync(`${root}/docs/traces-and-metrics.md`, metricsPage(root));
writeFileSync(`${root}/docs/log-lines.md`, logLinesPage(root));
writeFileSync(`${root}/docs/operations.md`, operationsPage(root));
writeFileSync(`${root}/docs/deploying.md`, deployingPage(root));
for (const [name, make] of Object.entries(deployFiles)) writeFileSync(`${root}/docs/deploy/${name}`, make());
