import { plainName } from './paths.ts';

/** Folders in which programs keep keys and passwords. */
const FOLDERS: ReadonlySet<string> = new Set([
  '.aws',
  '.azure',
  '.docker',
  '.gcloud',
  '.gnupg',
  '.kube',
  '.password-store',
  '.ssh',
  '.terraform.d',
]);

/** Files in which programs keep keys, tokens and passwords. */
const FILES: ReadonlySet<string> = new Set([
  '.boto',
  '.dockercfg',
  '.git-credentials',
  '.htpasswd',
  '.my.cnf',
  '.mylogin.cnf',
  '.netrc',
  '.npmrc',
  '.pgpass',
  '.pypirc',
  '.s3cfg',
  '.terraformrc',
  '.token',
  '.vault-token',
  '.yarnrc.yaml',
  '.yarnrc.yml',
  '_netrc',
  'application_default_credentials.json',
  'credentials',
  'credentials.json',
  'pgpass.conf',
  'service-account.json',
  'terraform.tfstate',
]);

/** Private keys; files that end in `.pub` are public. */
const KEY_NAME = /^id_(rsa|dsa|ecdsa|ecdsa_sk|ed25519|ed25519_sk|xmss)(?!\.pub$)/;
const KEY_ENDING = /\.(pem|key|ppk|p12|pfx|jks|keystore|kdbx|token)$/;
const ENVIRONMENT = /^\.env|\.env$/;
/** Files that are committed to document variables. */
const SAMPLE = /[._-](example|sample|template|dist|defaults)$|^(example|sample|template)\.env$/;
const SECRET_DATA = /^(secrets?|client_secret[\w.-]*|service[-_]account[\w.-]*)\.(json|ya?ml|toml|ini|properties|txt)$/;

/**
 * Returns whether a path leads to a likely secret (keys, passwords, `.env`), by the names in it. It treats spellings as
 * equal that some file systems treat as the same name: case, invisible characters, dots and spaces at the end, streams.
 * @param path relative, with forward slashes
 */
export function isSecretPath(path: string): boolean {
  const names = path.split('/').map(comparable);
  return names.some((name) => FOLDERS.has(name) || isSecretFile(name));
}

function isSecretFile(name: string): boolean {
  if (FILES.has(name) || KEY_NAME.test(name) || KEY_ENDING.test(name) || SECRET_DATA.test(name)) return true;
  return ENVIRONMENT.test(name) && !SAMPLE.test(name);
}

function comparable(name: string): string {
  const [own = ''] = plainName(name).split(':');
  let end = own.length;
  while (end > 0 && (own[end - 1] === '.' || own[end - 1] === ' ')) end -= 1;
  return own.slice(0, end);
}
