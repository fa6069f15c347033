import { linkSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { applyWrites, fanOut, previewWrites } from 'pawl/fan-out';
import { callTool, reply, scriptedModel } from 'pawl/testing';
import { describe, expect, test } from 'vitest';
import { Overlay } from '../../src/edits/overlay.ts';
import { OffLimits } from '../../src/edits/root/off-limits.ts';
import { isSecretPath } from '../../src/edits/root/secret-names.ts';
import { newRoot } from './folder.ts';

const offLimits = expect.objectContaining({
  code: 'WRITE_OUTSIDE_ROOT',
  message: expect.stringContaining('is off limits'),
});

describe('names that are likely to hold secrets', () => {
  test.for([
    '.env',
    '.env.local',
    '.env.production',
    'apps/web/.env',
    '.envrc',
    'prod.env',
    '.ENV',
    '.Env.Local',
    '.env ',
    '.env.',
    '.env::$DATA',
    'server.pem::$DATA',
    '.ssh:x/config',
    'server.pem. .',
    'id_rsa:x',
    '.e\u200dnv',
    'id_rsa',
    'keys/id_ed25519',
    'id_rsa.old',
    'server.pem',
    'tls/server.KEY',
    'store.p12',
    'a.pfx',
    'a.jks',
    'a.ppk',
    '.ssh/config',
    'home/.ssh/known_hosts',
    '.aws/credentials',
    '.AWS/config',
    '.kube/config',
    '.docker/config.json',
    '.gnupg/x',
    '.npmrc',
    'packages/a/.npmrc',
    '.yarnrc.yml',
    'packages/a/.Yarnrc.yml',
    '.netrc',
    '_netrc',
    '.git-credentials',
    '.pgpass',
    '.pypirc',
    '.vault-token',
    'gh.token',
    'credentials.json',
    'secrets.yaml',
    'client_secret_1-2.apps.json',
    'service-account.prod.json',
    'terraform.tfstate',
    '.htpasswd',
  ])('%j is off limits', (path) => expect(isSecretPath(path)).toBe(true));

  test.for([
    '.env.example',
    '.env.sample',
    '.env.template',
    '.env.dist',
    'example.env',
    'src/env.ts',
    'environment.ts',
    'id_rsa.pub',
    'keys.ts',
    'token.ts',
    'tokens.json',
    'src/secrets.ts',
    'secrets.md',
    'monkey',
    'pem',
    'docs/ssh.md',
    'npmrc',
    'credentials.ts',
    'certificate.crt',
  ])('%j is not', (path) => expect(isSecretPath(path)).toBe(false));
});

describe('the files that models see', () => {
  const files = {
    '.gitignore': 'build/\n*.log\n!keep.log\n',
    '.env': 'KEY=1',
    '.env.example': 'KEY=',
    'README.md': 'Hello',
    'a.log': 'log',
    'keep.log': 'log',
    'build/out.js': '1',
    'build/keep.log': '1',
    'src/main.ts': '1',
    'src/.gitignore': 'local.ts\n!a.log\n',
    'src/local.ts': '1',
    'src/a.log': '1',
    '.ssh/id_rsa': '1',
  };
  const hidden = [
    '.env',
    'a.log',
    'build/out.js',
    'build/keep.log',
    'src/local.ts',
    '.ssh/id_rsa',
    '.ssh/new',
    'new.log',
    '.env.new',
    'SRC/../.ENV',
  ];

  test('are listed without those that Git ignores, and without those that are likely to hold secrets', async () => {
    const { entries, isCut } = await new Overlay(newRoot(files)).list();
    expect({ entries, isCut }).toEqual({
      entries: [
        '.env.example',
        '.gitignore',
        'README.md',
        'keep.log',
        'src/',
        'src/.gitignore',
        'src/a.log',
        'src/main.ts',
      ],
      isCut: false,
    });
  });

  test.for(hidden)('are neither read, written nor deleted where they are off limits: %s', async (path) => {
    const overlay = new Overlay(newRoot({ ...files, 'SRC/x': '' }));
    await expect(overlay.read(path)).rejects.toThrow(offLimits);
    await expect(overlay.write(path, 'x')).rejects.toThrow(offLimits);
    await expect(overlay.delete(path)).rejects.toThrow(offLimits);
    expect(overlay.writes()).toEqual([]);
  });

  test.for(['build', '.ssh'])('are not listed from within a folder that is off limits: %s', async (folder) => {
    await expect(new Overlay(newRoot(files)).list(folder)).rejects.toThrow(offLimits);
  });

  test.for(['.env.example', 'keep.log', 'src/a.log', 'src/main.ts'])(
    'are read and written where they are not: %s',
    async (path) => {
      const overlay = new Overlay(newRoot(files));
      expect((await overlay.read(path)).content).toBeDefined();
      await overlay.write(path, 'new');
      expect(overlay.writes()).toMatchObject([{ path, content: 'new' }]);
    },
  );

  test('are not reached through links, to a file or to a folder', async () => {
    const root = newRoot(files);
    symlinkSync('.env', join(root, 'notes.txt'));
    symlinkSync('.ssh', join(root, 'docs'));
    const overlay = new Overlay(root);
    for (const path of ['notes.txt', 'docs/id_rsa']) {
      await expect(overlay.read(path)).rejects.toMatchObject({ code: 'WRITE_OUTSIDE_ROOT' });
    }
    expect((await overlay.list()).entries).not.toContain('notes.txt');
  });

  test('obey the rules above the root up to the top of its repository, and .git/info/exclude', async () => {
    const root = newRoot({
      ...files,
      '.git/info/exclude': 'private.md\n',
      '.gitignore': 'packages/*/dist\n',
      'packages/a/dist/x.js': '1',
      'packages/a/private.md': '1',
      'packages/a/x.ts': '1',
    });
    expect((await new Overlay(join(root, 'packages/a')).list()).entries).toEqual(['x.ts']);
  });

  test('are all there in a root that is itself ignored: it was named on purpose', async () => {
    const root = newRoot({ '.git/HEAD': '', '.gitignore': 'tmp/\n', 'tmp/work/x.ts': '1' });
    const overlay = new Overlay(join(root, 'tmp/work'));
    expect((await overlay.list()).entries).toEqual(['x.ts']);
    expect((await overlay.read('x.ts'))?.content).toBe('1');
  });

  test('do not change with a .gitignore that the model only proposes', async () => {
    const overlay = new Overlay(newRoot(files));
    await overlay.write('.gitignore', '');
    await expect(overlay.read('a.log')).rejects.toThrow(offLimits);
  });

  test('are all off limits where a .gitignore is too large to be read, and rules that are a link count for nothing, as for Git', async () => {
    const root = newRoot({
      'big/.gitignore': `${'#'.repeat(300_000)}\n`,
      'big/x.ts': '1',
      'linked/x.ts': '1',
      rules: '*',
    });
    symlinkSync('../rules', join(root, 'linked/.gitignore'));
    expect((await new Overlay(root).list()).entries).toEqual(['big/', 'linked/', 'linked/x.ts', 'rules']);
  });

  test('are compared without regard to case where the file system does so', async () => {
    const folding = await OffLimits.of(newRoot(files), true);
    expect([await folding.reason('A.LOG'), await folding.reason('SRC/main.ts')]).toEqual([
      'Git ignores it (.gitignore)',
      undefined,
    ]);
    expect(await (await OffLimits.of(newRoot(files), false)).reason('A.LOG')).toBeUndefined();
  });

  test('a listing with patterns that are made to take long ends, says that there is more, and leaves the event loop its turns', async () => {
    const names = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`${'a'.repeat(200)}${i}`, '']));
    const root = newRoot({ ...names, '.gitignore': `${'*a'.repeat(90)}[0-9]\n`.repeat(1_000) });
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const { entries, isCut } = await new Overlay(root).list();
    clearInterval(timer);
    // What was not compared to its end is not shown.
    expect({ entries, isCut }).toEqual({ entries: ['.gitignore'], isCut: true });
    // One for each of the 25 names that use up their steps; opening the root takes a few.
    expect(turns).toBeGreaterThan(15);
  });

  test('a model reads in the result of its call that a file is off limits, and its text reaches no provider', async () => {
    const model = scriptedModel([callTool('read_file', { path: '.env' }), callTool('list_files', {}), reply('done')]);
    await fanOut({ prompt: 'Look.', models: { model }, root: newRoot(files) });
    const sent = JSON.stringify(model.calls);
    expect(sent).toContain('\\".env\\" is off limits: a file or folder of that name is likely to hold secrets');
    expect(sent).not.toContain('KEY=1');
  });
});

describe('the writes of an answer', () => {
  test.for(['.env', 'sub/.npmrc', 'a.log', '.ssh/authorized_keys'])(
    'that are off limits are refused as a whole, also when the answer comes from a file: %s',
    async (path) => {
      const root = newRoot({ '.gitignore': '*.log', 'ok.txt': 'old' });
      const proposedWrites = [
        { path: 'ok.txt', content: 'new' },
        { path, content: 'x' },
      ];
      await expect(applyWrites({ proposedWrites }, { root })).rejects.toThrow(offLimits);
      await expect(previewWrites({ proposedWrites }, { root })).rejects.toThrow(offLimits);
      expect(readFileSync(join(root, 'ok.txt'), 'utf8')).toBe('old');
    },
  );

  test.for([
    ['.husky/pre-commit', 'hook'],
    ['sub/.husky/_/x', 'hook'],
    ['.githooks/x', 'hook'],
    ['.github/workflows/ci.yml', 'GitHub'],
    ['.GitHub/x', 'GitHub'],
    ['.vscode/tasks.json', 'editors'],
    ['Makefile', 'make'],
    ['sub/GNUmakefile', 'make'],
    ['.gitlab-ci.yml', 'CI'],
    ['.pre-commit-config.yaml', 'hooks'],
    ['binding.gyp', 'package managers'],
    ['.gitattributes', 'Git'],
    ['.gitignore', 'models'],
    ['package.json', 'scripts'],
    ['packages/a/package.json', 'scripts'],
  ] as const)('are flagged where other programs execute them by themselves: %s', async ([path, word]) => {
    const root = newRoot({ 'x.ts': '' });
    const proposedWrites = [
      { path, content: '{ "scripts": { "postinstall": "sh x" } }' },
      { path: 'x.ts', content: '1' },
    ];
    const previewed = await previewWrites({ proposedWrites }, { root });
    expect(previewed.map(({ warning }) => warning)).toEqual([expect.stringContaining(word), undefined]);
    const { files } = await applyWrites({ proposedWrites }, { root });
    expect(files).toEqual([
      { path, change: 'created', warning: expect.stringContaining(word) },
      { path: 'x.ts', change: 'changed' },
    ]);
  });

  test('are not flagged where package.json keeps its scripts, and are where a file is executable or cannot be read', async () => {
    const root = newRoot({ 'package.json': '{ "scripts": { "test": "x" }, "version": "1" }' });
    writeFileSync(join(root, 'run'), '#!/bin/sh', { mode: 0o755 });
    const warnings = async (path: string, content: string) =>
      (await previewWrites({ proposedWrites: [{ path, content }] }, { root }))[0]?.warning;
    expect(await warnings('package.json', '{ "version": "2", "scripts": { "test": "x" } }')).toBeUndefined();
    expect(await warnings('package.json', '{ "scripts": { "test": "y" } }')).toContain('scripts');
    expect(await warnings('package.json', '{')).toContain('scripts');
    expect(await warnings('run', '#!/bin/sh\nx')).toBe('the file is executable');
    expect(await warnings('src/index.ts', 'x')).toBeUndefined();
  });

  test('a second name of a secret file is a file of its own: hard links cannot be distinguished', async () => {
    const root = newRoot({ '.env': 'KEY=1' });
    linkSync(join(root, '.env'), join(root, 'copy.txt'));
    expect((await new Overlay(root).read('copy.txt')).content).toBe('KEY=1');
  });
});

test('where a file system takes two spellings for one name, .gitignore holds for both: case beyond ASCII, and composed letters', async () => {
  const root = newRoot({ '.gitignore': 'secr\u00e9t.txt\n\u00c9tat/\n*.na\u00efve\n' });
  const folding = await OffLimits.of(root, true);
  const exact = await OffLimits.of(root, false);
  for (const path of ['SECR\u00c9T.TXT', 'secre\u0301t.txt', 'e\u0301tat/a', '\u00e9TAT/a', 'x.nai\u0308ve']) {
    expect([path, await folding.reason(path)]).toEqual([path, expect.stringContaining('Git ignores it')]);
    expect([path, await exact.reason(path)]).toEqual([path, undefined]);
  }
});
