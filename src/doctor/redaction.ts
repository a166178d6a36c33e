// Keeps secrets that are known out of whatever is shown.

/** The texts with each secret replaced. */
export function withoutSecrets(secrets: readonly string[]): (text: string) => string {
  const longestFirst = secrets.toSorted((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text);
}
