import { afterEach, describe, expect, test, vi } from 'vitest';
import { withoutKeys } from '../../src/cli/ui/own-secrets.ts';
import { agentFile, emptyFolder, pawl } from './pawl.ts';

const value = 'Tr0ub4dor&3"x';

describe('what the command line prints', () => {
  afterEach(() => void vi.unstubAllEnvs());

  test.for([
    'OPENAI_API_KEY',
    'AWS_SECRET_ACCESS_KEY',
    'ENCRYPTION_KEY',
    'GITHUB_TOKEN',
    'TOKEN',
    'aws_session_token',
    'CLIENT_SECRET',
    'PGPASSWORD',
    'PASSWORD_OF_ADA',
    'MYSQL_PASSWD',
    'SSH_PASSPHRASE',
    'CREDENTIALS',
    'AZURE_CREDENTIAL_TEXT',
    'GOOGLE_CREDENTIALS',
    'MYSQL_PWD',
    'DB_PWD',
    'GH_PAT',
    'AZURE_DEVOPS_EXT_PAT',
    'SMTP_PASS',
    'PASS',
    'SSHPASS',
    'REDISCLI_AUTH',
    'npm_config__auth',
    'MISTRAL_APIKEY',
  ])('has the name %s in the place of its value, plain, in JSON and in a URL', (name) => {
    vi.stubEnv(name, value);
    const printed = withoutKeys(`${value} ${JSON.stringify({ value })} https://host/?q=${encodeURIComponent(value)}`);
    expect(printed).toBe(`${name} {"value":"${name}"} https://host/?q=${name}`);
  });

  test.for([
    ...['PATH_TO_BOOKS', 'PWD', 'MONKEY', 'TOKENS', 'KEYBOARD', 'KEY_FILE', 'AUTHOR'],
    ...['PATH', 'OLDPWD', 'SSH_AUTH_SOCK', 'XAUTHORITY', 'COMPASS', 'FEEDPAT', 'PATTERN', 'GIT_PATH', 'BYPASS'],
  ])('leaves the value of %s alone, whose name does not say that it is secret', (name) => {
    vi.stubEnv(name, value);
    expect(withoutKeys(`It is ${value}.`)).toBe(`It is ${value}.`);
  });

  test('leaves texts alone that contain a secret of less than 8 characters by chance', () => {
    vi.stubEnv('SMALL_TOKEN', 'value-1');
    vi.stubEnv('EMPTY_TOKEN', '');
    expect(withoutKeys('value-12')).toBe('value-12');
  });

  test('has nothing left of a secret that contains another one', () => {
    vi.stubEnv('A_TOKEN', 'abcdefgh');
    vi.stubEnv('B_TOKEN', 'abcdefgh-abcdefgh');
    expect(withoutKeys('abcdefgh-abcdefgh abcdefgh')).toBe('B_TOKEN A_TOKEN');
  });

  test('takes the signs of a replacement text in a name as they are', () => {
    vi.stubEnv('A$&_TOKEN', value);
    expect(withoutKeys(value)).toBe('A$&_TOKEN');
  });

  test('hides the password of a connection string, as it is written there and decoded', () => {
    vi.stubEnv('DATABASE_URL', 'postgres://ada:p%40ss-word@db.example:5432/app');
    const text = 'no answer from postgres://ada:p%40ss-word@db.example:5432/app (p@ss-word)';
    expect(withoutKeys(text)).toBe('no answer from postgres://ada:DATABASE_URL@db.example:5432/app (DATABASE_URL)');
  });

  test('hides a short password of a connection string only where it stands as one', () => {
    vi.stubEnv('DATABASE_URL', 'postgres://app:app@db/app');
    expect(withoutKeys('postgres://app:app@db/app: no app')).toBe('postgres://app:DATABASE_URL@db/app: no app');
  });
});

test('`pawl run` prints no token that a provider quotes in its error', async () => {
  const env = { MY_SERVICE_TOKEN: 'svc-0123456789' };
  const ended = await pawl(['run', agentFile('leaking'), 'go'], { cwd: emptyFolder(), env });
  expect(ended.code).toBe(1);
  expect(`${ended.stdout}${ended.stderr}`).not.toContain('0123456789');
  expect(ended.stderr).toContain('MY_SERVICE_TOKEN');
});
