#!/usr/bin/env node
// create-pawl <folder>: copies a template. It has no dependencies, and runs on each Node that has npm.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const templates = {
  cli: 'a command that asks a person on the terminal',
  api: 'an HTTP API with Hono and Studio',
  worker: 'a fleet of workers on PostgreSQL',
  chat: 'a chat in the browser with Next and useChat',
};

/** As IS_PUBLISHED of Pawl's sources, by a test: until then the registry may hand out another person's package under the name. */
const isPublished = false;
const version = '0.1.0';

const help = `usage: create-pawl <folder> [--template <name>] [--pawl <version>]

Makes a program with durable agent runs in a new folder. It runs without a key: a script plays the model.

Templates:
${Object.entries(templates)
  .map(([name, what]) => `  ${name.padEnd(8)}${what}`)
  .join('\n')}

  --template <name>  without it, a terminal is asked
  --pawl <version>   what package.json names: a version, or file:<a packed file>; default: ${
    isPublished ? `^${version}` : 'the packed file of this clone'
  }
  --help             prints this

Exit codes: 0; 2 for a wrong option, or a folder that has something in it.`;

try {
  await main();
} catch (error) {
  console.error(`create-pawl: ${error.message}`);
  process.exitCode = 2;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { template: { type: 'string' }, pawl: { type: 'string' }, help: { type: 'boolean' } },
  });
  if (values.help) return console.log(help);
  const [given, ...others] = positionals;
  if (given === undefined || others.length > 0) throw new Error('name one folder; --help says more');
  const folder = resolve(given);
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new Error(`${folder} has something in it`);
  const template = await chosen(values.template);
  write(folder, { template, pawl: fromHere(values.pawl ?? defaultPawl()) });
  console.log(`Made ${given}, from the template ${template}. Next:

  cd ${given}
  npm install${hasNode() ? '' : ` node@24   # this Node is ${process.version}, and Pawl needs 22.18`}
  npm test       # kills the agent at each of its boundaries
  npm start

README.md says the rest.`);
}

/** Returns the Pawl of a program for which none is named. */
function defaultPawl() {
  if (isPublished) return `^${version}`;
  const packed = fileURLToPath(new URL(`../pawl-${version}.tgz`, import.meta.url));
  if (existsSync(packed)) return `file:${packed}`;
  throw new Error(
    `Pawl is not published yet: run \`npm pack\` in its clone, which writes ${packed}, or name a packed file: --pawl file:<path>`,
  );
}

/** npm reads the path of a packed file from the new folder, a person writes it from this one. */
function fromHere(version) {
  if (!version.startsWith('file:')) return version;
  const path = resolve(version.slice('file:'.length));
  if (!existsSync(path)) throw new Error(`there is no packed file ${path}`);
  return `file:${path}`;
}

/** Returns whether the Node of this computer runs a template. npm scripts find one that is installed beside it first. */
function hasNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 18);
}

/** Returns the name of a template: the one that was given, or what a person on the terminal chooses. */
async function chosen(given) {
  const names = Object.keys(templates);
  let name = given;
  if (name === undefined) {
    if (!process.stdin.isTTY) throw new Error(`name a template: --template ${names.join(', or ')}`);
    const terminal = createInterface({ input: process.stdin, output: process.stdout });
    for (const each of names) console.log(`  ${each.padEnd(8)}${templates[each]}`);
    name = (await terminal.question('Template: ')).trim();
    terminal.close();
  }
  if (!Object.hasOwn(templates, name)) throw new Error(`there is no template "${name}"; there are ${names.join(', ')}`);
  return name;
}

function write(folder, { template, pawl }) {
  const from = fileURLToPath(new URL('templates/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  for (const part of ['base', template]) cpSync(join(from, part), folder, { recursive: true });
  // npm would not pack it under its own name.
  renameSync(join(folder, '_gitignore'), join(folder, '.gitignore'));
  const path = join(folder, 'package.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9._-]/g, '-')
    .replace(/^[._-]+/, '');
  const whole = { ...manifest, name: name || 'agent', dependencies: { ...manifest.dependencies, pawl } };
  writeFileSync(path, `${JSON.stringify(whole, null, 2)}\n`);
}
