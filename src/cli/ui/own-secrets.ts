/*
 * Errors of providers may quote a request, and tools may print the environment. The values of this process's secret variables
 * are never printed: the variable's name is printed instead.
 */

/**
 * Variables that hold a secret, by their names: `OPENAI_API_KEY`, `GITHUB_TOKEN`, `GH_PAT`, `PGPASSWORD`, `MYSQL_PWD`, `SSHPASS`, …
 * `PWD` and `OLDPWD` name folders, and `PATH` and `SSH_AUTH_SOCK` paths.
 */
const SECRET_NAME = /(^|_)((API)?KEY|TOKEN|SECRET|(SSH)?PASS|AUTH)$|_(PAT|PWD)$|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL/i;

/** Shorter values appear in texts by chance: replacing them would damage the texts. */
const MIN_SECRET = 8;

/** A text that is not printed, and what is printed instead. */
interface Hidden {
  readonly text: string;
  readonly shown: string;
}

/** Replaces secrets of this process's environment (API keys, passwords) in a text by the names of their variables. */
export function withoutKeys(text: string): string {
  const hidden = Object.entries(process.env).flatMap(([name, value = '']) => [
    ...(SECRET_NAME.test(name) ? formsOf(name, value) : []),
    ...passwordIn(name, value),
  ]);
  // The longest first: one secret may contain another.
  hidden.sort((a, b) => b.text.length - a.text.length);
  return hidden.reduce((clean, secret) => clean.replaceAll(secret.text, () => secret.shown), text);
}

/** The value as it is, as JSON, and as part of a URL. */
function formsOf(name: string, value: string): Hidden[] {
  if (value.length < MIN_SECRET) return [];
  const encoded = value.isWellFormed() ? [encodeURIComponent(value)] : [];
  const forms = [value, JSON.stringify(value).slice(1, -1), ...encoded];
  return forms.map((text) => ({ text, shown: name }));
}

/** The password of a connection string, such as `DATABASE_URL`. A short one is hidden only inside its URL. */
function passwordIn(name: string, value: string): Hidden[] {
  if (!value.includes('://') || !URL.canParse(value)) return [];
  const { password } = new URL(value);
  if (password === '') return [];
  return [password, decoded(password)].flatMap((form) => [
    { text: `:${form}@`, shown: `:${name}@` },
    ...formsOf(name, form),
  ]);
}

function decoded(password: string): string {
  try {
    return decodeURIComponent(password);
  } catch {
    return password;
  }
}
