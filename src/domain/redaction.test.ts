// Redaction removes everything that looks like a credential, and leaves other text unchanged.
import { expect, test } from "bun:test";
import { generateApiKey } from "./api-key.ts";
import { mayHoldCredentials, redactCredentials, redactSecrets } from "./redaction.ts";

const key = generateApiKey("live");
const jwt = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzb21lYm9keSJ9.c2lnbmF0dXJlLW9mLWl0";

const texts: readonly [name: string, text: string, secret: string, shown: string][] = [
  ["a key of ours", `upstream said: bad key ${key}.`, key.slice(11), "upstream said: bad key sk_live_hr_…."],
  ["a refresh token", `hrr_${"a1-_".repeat(10)} is used`, "a1-_a1-_", "hrr_… is used"],
  ["an app's secret", `hrs_${"a1B2".repeat(10)} is wrong`, "a1B2a1B2", "hrs_… is wrong"],
  ["a join token", `hrn_${"a1B2".repeat(8)} is used`, "a1B2a1B2", "hrn_… is used"],
  [
    "a bearer token",
    'sent "Authorization: Bearer abc.DEF-123_xyz"',
    "abc.DEF",
    'sent "Authorization: Bearer [redacted]"',
  ],
  [
    "a bearer token in lower case",
    "authorization: bearer 0123456789",
    "0123456789",
    "authorization: bearer [redacted]",
  ],
  ["a bearer token in capitals", "AUTHORIZATION: BEARER 0123456789", "0123456789", "AUTHORIZATION: BEARER [redacted]"],
  ["a basic credential", "Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpw", "Basic [redacted]"],
  ["a JWT", `token ${jwt} expired`, "c2lnbmF0", "token [redacted] expired"],
  ["an encrypted JWT", `${jwt}.abc.def!`, "c2lnbmF0", "[redacted]!"],
  ["a password in a URL", "postgres://me:s3cret@db:5432/x failed", "s3cret", "postgres://[redacted]@db:5432/x failed"],
  ["a password with an @", "postgres://me:s3@cr3t@db/x failed", "cr3t", "postgres://[redacted]@db/x failed"],
  ["a token as the user of a URL", "https://ghtoken@git.example/x", "ghtoken", "https://[redacted]@git.example/x"],
  [
    "a key of another service",
    "Incorrect API key: sk-proj-abcdefghijklmnop1234",
    "abcdefgh",
    "Incorrect API key: [redacted]",
  ],
  ["several at once", `${key} and ${jwt}\n  at x`, "c2lnbmF0", "sk_live_hr_… and [redacted]\n  at x"],
];

test.each(texts)("redacts %s", (_name, text, secret, shown) => {
  expect(mayHoldCredentials(text)).toBe(true);
  const safe = redactCredentials(text);
  expect(safe).not.toContain(secret);
  expect(safe).toBe(shown);
});

const harmless = [
  "The model server did not answer within 30 s.",
  "http://127.0.0.1:11434/v1 answered 500",
  "ollama: connect ECONNREFUSED 127.0.0.1:11434",
  "key_0192f0a0 of acct_01 asked task_sk_1",
  "somebody@example.com",
  "sk_live_hr_…x7Qp",
  "bearer of news",
  "at serve (/opt/headrace/src/server/serve.ts:98:12)",
];

test.each(harmless)("keeps %s", (text) => {
  expect(redactCredentials(text)).toBe(text);
});

test("redacts a known secret anywhere unless it is as short as a word", () => {
  expect(redactSecrets("a (hunter2-hunter2) and hunter2-hunter2", ["hunter2-hunter2", "and"])).toBe(
    "a ([redacted]) and [redacted]",
  );
  expect(redactSecrets("ollama answered", ["ollama", ""])).toBe("ollama answered");
});

test("redacts a long, nearly matching text in linear time", () => {
  const time = (length: number) => {
    const texts = [
      "://a".repeat(length),
      "eyJaaaaaa.".repeat(length),
      `Bearer ${" ".repeat(length * 4)}`,
      "sk-".repeat(length),
    ];
    const startedMs = performance.now();
    for (const text of texts) redactCredentials(text);
    return performance.now() - startedMs;
  };
  time(1_000);
  let short = Number.POSITIVE_INFINITY;
  let long = Number.POSITIVE_INFINITY;
  // Both lengths are measured alternately, and the shortest time of each counts, because other work of the machine
  // affects both.
  for (let round = 0; round < 6; round++) {
    short = Math.min(short, time(20_000));
    long = Math.min(long, time(80_000));
  }
  // A text four times as long must take about four times the time. Quadratic time would be sixteen times.
  expect(long / Math.max(short, 1)).toBeLessThan(12);
});
