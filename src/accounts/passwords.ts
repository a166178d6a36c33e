// Passwords: which are accepted, and how they are hashed and compared (argon2id, RFC 9106). Only a few are hashed at a
// time.
import { GatewayError, invalidRequest } from "../base/errors.ts";
import { normalizedEmail } from "../domain/people/person.ts";
import { Turns } from "../policy/turns.ts";

export const minPasswordLength = 12;
export const maxPasswordLength = 256;

/** `memoryCost` in KiB. */
const parameters = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
const currentForm = "$argon2id$v=19$m=19456,t=2,p=1$";
/** The hash of a random text that was never stored. Comparing with it takes as long as with a real hash. */
const nobodysHash =
  "$argon2id$v=19$m=19456,t=2,p=1$QF13DhG0AgoXdvY+FXYtq8wvZl0f7lCxiNSEuVLxTbw$A1l9dkjyjhWbA47oHlKz5J1Q45B9V99td1y2F/6c/X8";

/**
 * Limits concurrent hashing. Each hash takes tens of milliseconds of a core and 19 MiB, and sign-ins must not starve
 * model requests.
 */
const turns = new Turns(2, 60);

/**
 * Checks a new password. Throws `invalid_request`, naming the field `password`. `email` is the address of the
 * password's person.
 */
export function checkPassword(password: string, email?: string): string {
  const length = password.length > 4 * maxPasswordLength ? Number.POSITIVE_INFINITY : [...normalized(password)].length;
  if (length < minPasswordLength || length > maxPasswordLength) {
    throw invalidRequest(
      `password: must be ${minPasswordLength} to ${maxPasswordLength} characters long. Several words with blanks between them are fine.`,
    );
  }
  const plain = normalizedEmail(password);
  if (email !== undefined && plain === email) throw tooEasy("is your e-mail address");
  if (new Set(plain).size < fewestDifferent) throw tooEasy("repeats the same few characters");
  if (common.has(plain.replace(/[\s_.!-]+/g, ""))) throw tooEasy("is one that many people use");
  return password;
}

/** Hashes a password. Throws `service_unavailable` if too many hashes wait. */
export function hashPassword(password: string): Promise<string> {
  return inTurn(() => Bun.password.hash(normalized(password), parameters));
}

/**
 * Compares a password with its hash. If either is missing, returns false after the usual time. Throws
 * `service_unavailable` if too many hashes wait.
 */
export async function verifyPassword(password: string, hash: string | null | undefined): Promise<boolean> {
  const matches = await inTurn(() => Bun.password.verify(normalized(password), hash ?? nobodysHash));
  return matches && hash != null;
}

/** Reports whether the hash was made with other parameters than the current ones. */
export function isOutdatedHash(hash: string): boolean {
  return !hash.startsWith(currentForm);
}

/** Normalizes Unicode, so that the same letters typed on different machines are the same password. */
function normalized(password: string): string {
  return password.normalize("NFC");
}

async function inTurn<Value>(task: () => Promise<Value>): Promise<Value> {
  const turn = turns.run(task);
  if (turn) return turn;
  throw new GatewayError("service_unavailable", "Too many people are signing in at the moment. Try again in 2 s.", {
    detail: "passwords_waiting",
    retryAfterSeconds: 2,
  });
}

function tooEasy(why: string): GatewayError {
  return invalidRequest(`password: ${why}, and so is guessed easily. Choose another one.`);
}

const fewestDifferent = 5;
/** Common long passwords that attackers try first, without spaces and punctuation and in lower case. */
const common = new Set(
  `123456789012 1234567890123 12345678901234 123456789012345 1234567890123456 12345678901234567890 123123123123 112233445566
  1234567890ab 1234567890abc abc123456789 abcd12345678 abcdef123456 123456abcdef abcdefghijkl abcdefghijklm abcdefghijklmnop
  abcdefghijklmnopqrstuvwxyz 1q2w3e4r5t6y 1q2w3e4r5t6y7u 1q2w3e4r5t6y7u8i 1qaz2wsx3edc 1qaz2wsx3edc4rfv qazwsxedcrfv
  qwertyuiop12 qwertyuiop123 qwertyuiop1234 qwertyuiopasdfghjkl qwertyuiop[] qwertyqwerty qwerty123456 qwerty1234567
  qwerty12345678 asdfghjkl123 asdfghjkl;' zxcvbnm12345 zxcvbnmasdfghjkl passwordpassword password1234 password12345 password123456
  password2024 password2025 password2026 passw0rd1234 p@ssw0rd1234 p@ssword1234 mypassword123 mypassword1234 changemechangeme
  changeme1234 changeme12345 letmeinletmein letmein12345 letmein123456 welcome12345 welcome123456 welcome2024 welcome2025
  administrator administrator1 adminadminadmin admin1234567 admin12345678 administrator123 superuser123 rootrootroot
  iloveyouiloveyou iloveyou1234 iloveyou12345 ilovecookies correcthorsebatterystaple trustno1trustno1 footballfootball
  baseballbaseball monkeymonkey sunshine1234 princess1234 dragondragon headraceheadrace headrace1234`.split(/\s+/),
);
