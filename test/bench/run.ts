// npm run bench [-- options]: Pawl as it is built, against the floor, on this machine. request.ts has the options.
import { readFileSync } from 'node:fs';
import { againstPart, commitOf } from './against.ts';
import { type BenchPart, parts } from './parts.ts';
import { machine, markdownOf, type Report, storedReport, tableOf } from './report.ts';
import { type Form, requestOf } from './request.ts';

const request = requestOf(process.argv.slice(2), parts);
switch (request.kind) {
  case 'text':
    console.log(request.text);
    break;
  case 'wrong':
    console.error(request.message);
    process.exitCode = 2;
    break;
  case 'stored':
    printStored(request.paths, request.form);
    break;
  case 'measure':
    await measureAll(request);
    break;
  case 'compare':
    await compare(request);
}

async function measureAll(work: { parts: readonly BenchPart[]; isQuick: boolean; form: Form }): Promise<void> {
  const begunAt = new Date().toISOString();
  const measured: Report['parts'][number][] = [];
  for (const { name, title, measure } of work.parts) {
    console.error(`measuring ${name} …`);
    try {
      measured.push({ title, ...(await measure(work.isQuick)) });
    } catch (error) {
      // The figures of the other parts are worth having.
      console.error(error);
      measured.push({ title, rows: [], broken: [{ promise: `${name} can be measured`, seen: String(error) }] });
    }
  }
  printReports([{ machine: machine(), begunAt, isQuick: work.isQuick, parts: measured }], work.form);
  // A slow figure is a fact about a machine; a broken promise is a defect.
  if (measured.some(({ broken }) => broken.length > 0)) process.exitCode = 1;
}

async function compare({ commit: name, ...work }: { commit: string; isQuick: boolean; form: Form }): Promise<void> {
  let part: BenchPart;
  try {
    part = againstPart(commitOf(name));
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 2;
    return;
  }
  await measureAll({ ...work, parts: [part] });
}

function printStored(paths: readonly string[], form: Form): void {
  const reports: Report[] = [];
  for (const path of paths) {
    try {
      reports.push(storedReport(readFileSync(path, 'utf8')));
    } catch (error) {
      console.error(`${path} cannot be read: ${(error as Error).message}`);
      process.exitCode = 2;
      return;
    }
  }
  printReports(reports, form);
}

function printReports(reports: readonly Report[], form: Form): void {
  if (form === 'table') console.log(`\n${tableOf(reports)}`);
  else if (form === 'markdown') console.log(markdownOf(reports));
  else console.log(JSON.stringify(reports.length === 1 ? reports[0] : reports, null, 2));
}
