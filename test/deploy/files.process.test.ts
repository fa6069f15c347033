import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { checkCompose, checkDockerfile, checkKubernetes, checkUnit } from './checks.ts';

const textOf = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../docs/deploy/${name}`, import.meta.url)), 'utf8');
const dockerfile = textOf('Dockerfile');

/** Each file, its check, and changes that it must find. */
const files = {
  'pawl.service': {
    check: checkUnit,
    mutants: [
      ['KillMode', 'KilMode', 'unknown key KilMode'],
      ['TimeoutStopSec=70', 'TimeoutStopSec=60', 'TimeoutStopSec waits 60, and needs 65 s'],
      [
        '/usr/bin/node --max-old-space-size=384 node_modules/.bin/pawl',
        '/usr/bin/npx pawl',
        'ExecStart does not begin with node',
      ],
      ['--drain 60s', '--drian 60s', 'ExecStart: unknown option'],
      ['--max-old-space-size=384', '--max-old-space-size=512', 'MemoryMax: a heap of 512 MB in 512M'],
    ],
  },
  Dockerfile: {
    check: checkDockerfile,
    mutants: [
      ['USER node\n', '', 'it runs as root'],
      [
        'CMD ["node", "--max-old-space-size=384", "node_modules/.bin/pawl",',
        'CMD ["npx", "pawl",',
        'CMD does not begin with node',
      ],
      ['CMD ["node", "--max', 'CMD exec node ["--max', 'CMD does not begin with node'],
      ['COPY package.json agent.ts', 'COPPY package.json agent.ts', 'unknown instruction COPPY'],
      [' --ignore-scripts', '', 'npm ci lacks its options'],
      ['"health", "--url"', '"health", "--address"', 'HEALTHCHECK: unknown option'],
    ],
  },
  'compose.yml': {
    check: (text: string) => checkCompose(text, dockerfile),
    mutants: [
      ['stop_grace_period: 15s', 'stop_grace_period: 10s', 'stop_grace_period waits 10s, and needs 13 s'],
      ['restart: on-failure', 'restart: always', 'a worker that ended in order is started again'],
      ['POSTGRES_PASSWORD: $', 'POSTGRES_PASSWORD: hunter2 # $', 'a password is in the file'],
    ],
  },
  'kubernetes.yml': {
    check: checkKubernetes,
    mutants: [
      [
        'terminationGracePeriodSeconds: 70',
        'terminationGracePeriodSeconds: 30',
        'terminationGracePeriodSeconds waits 30, and needs 65 s',
      ],
      ['runAsNonRoot: true', 'runAsNonRoot: false', 'pawl-worker may run as root'],
      ['path: /healthz', 'path: /', 'the liveness probe asks something else'],
      ["'0.0.0.0:8080'", "'8080'", 'no kubelet reaches the probes'],
      ['limits: { memory: 512Mi }', 'limits: {}', 'pawl-worker has no requests or no limit'],
      [
        'maxUnavailable: 1\n  selector:\n    matchLabels: { app: pawl-worker }',
        'maxUnavailable: 1\n  selector:\n    matchLabels: { app: other }',
        'the PodDisruptionBudget selects other pods',
      ],
      ['restartPolicy: OnFailure', 'restartPolicy: Never', 'pawl-prune repeats without end'],
      ['[prune, --json]', '[prune, --jsn]', 'pawl-prune: unknown option'],
    ],
  },
} as const;

describe.for(Object.entries(files))('docs/deploy/%s', ([name, { check, mutants }]) => {
  test('stops later than its drain ends, runs node and no shell, and takes options that there are (operations 28, 29, 30, 31, 43)', () => {
    expect(check(textOf(name))).toEqual([]);
  });

  const found: readonly (readonly [string, string, string])[] = mutants;
  test.for(found)('with %j as %j is refused (operations 29, 30, 31)', ([from, to, problem]) => {
    const changed = textOf(name).replace(from, to);
    expect(changed).not.toBe(textOf(name));
    expect(check(changed).join('\n')).toContain(problem);
  });
});

/** Whether systemd can read a unit on this machine. */
function hasSystemd(): boolean {
  try {
    execFileSync('systemd-analyze', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test.skipIf(!hasSystemd())(
  'systemd, which is on this machine, finds nothing wrong with pawl.service, and an unknown key in a changed one (operations 29)',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-unit-'));
    const verify = (text: string) => {
      const unit = join(folder, 'pawl.service');
      writeFileSync(unit, text.replace('/usr/bin/node', process.execPath).replace('/opt/app', folder));
      return spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' }).stderr;
    };
    expect(verify(textOf('pawl.service'))).toBe('');
    expect(verify(textOf('pawl.service').replace('KillMode', 'KilMode'))).toContain("Unknown key 'KilMode'");
    rmSync(folder, { recursive: true });
  },
);

test('each thing that no test can check has the day on which a person last did it, or never (operations 44)', () => {
  const page = textOf('../deploying.md');
  const table = page.slice(page.indexOf('| what | the tests of Pawl |')).split('\n');
  const rows = table.slice(2, table.indexOf('')).map((line) => line.split('|').map((cell) => cell.trim()));
  expect(rows.length).toBeGreaterThan(6);
  const today = new Date().toISOString().slice(0, 10);
  for (const [, what, , unchecked, day = ''] of rows) {
    const isDay = /^20\d\d-[01]\d-[0-3]\d$/.test(day) && day <= today;
    expect(unchecked === '' ? day === '' : isDay || day === 'never', `${what}: ${day}`).toBe(true);
  }
});
