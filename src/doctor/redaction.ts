// Keeps known secrets out of every output.

/** Replaces each secret in a text. */
export function withoutSecrets(secrets: readonly string[]): (text: string) => string {
  const longestFirst = secrets.toSorted((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text);
}
