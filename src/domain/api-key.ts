// The format of API keys: a prefix with the environment, an infix, a random part and a checksum. Nothing is stored
// here.

export const environments = ["live", "test", "dev"] as const;
/** The environments of one installation, which are kept separate. */
export type Environment = (typeof environments)[number];

/**
 * The environments of a model that declares none. `test` is missing: test keys reach only models that are marked for
 * test.
 */
export const defaultEnvironments: readonly Environment[] = ["live", "dev"];

/** Returns the environments in the order of `environments`, without duplicates. */
export function inUsualOrder(given: readonly Environment[]): Environment[] {
  return environments.filter((environment) => given.includes(environment));
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const randomLength = 30;
const checksumLength = 6;
const keyPattern = /^sk_(live|test|dev)_hr_[0-9A-Za-z]{36}$/;

/** Generates a key: `sk_dev_hr_`, 30 random base62 characters (178 bits of entropy) and a checksum of 6 characters. */
export function generateApiKey(environment: Environment): string {
  const body = `sk_${environment}_hr_${randomBase62(randomLength)}`;
  return body + checksum(body);
}

/** Returns random characters from the system's secure generator. Each has 5.95 bits of entropy. */
export function randomBase62(length: number): string {
  let random = "";
  const bytes = new Uint8Array(64);
  while (random.length < length) {
    crypto.getRandomValues(bytes);
    for (const byte of bytes) {
      // 248 is the largest multiple of 62 below 256. Larger bytes are skipped, because they would favour the first
      // characters.
      if (byte < 248 && random.length < length) random += alphabet[byte % 62];
    }
  }
  return random;
}

/**
 * Returns the environment of a well-formed key, or undefined. The checksum rejects mistyped keys without a look-up. It
 * does not prove that the key exists.
 */
export function parseApiKey(key: string): Environment | undefined {
  const match = keyPattern.exec(key);
  if (!match) return undefined;
  const body = key.slice(0, -checksumLength);
  return checksum(body) === key.slice(-checksumLength) ? (match[1] as Environment) : undefined;
}

/** Returns the environment of a key that was already checked to be well-formed. */
export function environmentOf(key: string): Environment {
  const letter = key.charCodeAt(3);
  if (letter === letterOf.live) return "live";
  return letter === letterOf.test ? "test" : "dev";
}

const letterOf = { live: "l".charCodeAt(0), test: "t".charCodeAt(0) };

/** Returns the parts of a key that may be shown: its prefix and its last four characters. */
export function displayParts(key: string): { prefix: string; last4: string } {
  return { prefix: key.slice(0, key.indexOf("_hr_") + 4), last4: key.slice(-4) };
}

const ofOurs = /_hr_|hr[nrs]_/;

/** Masks API keys, tokens and secrets of the gateway in a text, for instance a key that a person entered as a name. */
export function maskKeys(text: string): string {
  if (!ofOurs.test(text)) return text;
  // Join tokens, refresh tokens and secrets of apps begin with hrn_, hrr_ and hrs_.
  return text.replace(/(sk_(?:live|test|dev)_hr_)\w+/g, "$1…").replace(/\b(hr[nrs]_)[\w-]{20,}/g, "$1…");
}

/** Reports whether a key has the shown prefix and last four characters. */
export function showsAs(key: string, record: { prefix: string; last4: string }): boolean {
  const { prefix, last4 } = displayParts(key);
  return prefix === record.prefix && last4 === record.last4;
}

function checksum(body: string): string {
  let value = Bun.hash.crc32(body);
  let text = "";
  for (let i = 0; i < checksumLength; i++) {
    text = alphabet[value % 62] + text;
    value = Math.floor(value / 62);
  }
  return text;
}
