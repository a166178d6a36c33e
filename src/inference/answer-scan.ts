// Looks through a whole answer without making anything of it: most can go to the client as the engine wrote them.

const names = ["id", "object", "created", "model", "choices", "usage", "error"] as const;
export type AnswerMember = (typeof names)[number];

/** Longer ones are left to JSON.parse. */
const capacity = 64 * 1024;
/** Words are read beyond the end; what stands there ends every string. */
const endMark = 8;
const memory = new ArrayBuffer(capacity + endMark);
/** The answer at hand is copied here: memory that is always warm, and can be read a word at a time. */
const bytes = new Uint8Array(memory);
const words = new Int32Array(memory);
const text = Buffer.from(memory);
/** Start and end of the value of each of these members, in this order; both 0 where there is none. */
const places = new Int32Array(2 * names.length);
/** Bits of a number hold what encloses a value. */
const mostDepth = 30;

const nameBytes = names.map((name) => Buffer.from(name));
const [quote, backslash, comma, colon, minus, plus, dot] = [0x22, 0x5c, 0x2c, 0x3a, 0x2d, 0x2b, 0x2e];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];
const [zero, nine, space, letterE, letterU] = [0x30, 0x39, 0x20, 0x65, 0x75];
const fault = -1;
const other = -2;
/** For each byte that may follow a backslash (RFC 8259, 7): 1, and 5 where four more must follow it. */
const escapes = new Uint8Array(256);
for (const character of '"\\/bfnrt') escapes[character.charCodeAt(0)] = 1;
escapes[letterU] = 5;
const hexBytes = new Uint8Array(256);
for (const character of "0123456789abcdefABCDEF") hexBytes[character.charCodeAt(0)] = 1;

/**
 * Whether the answer is a JSON object without any fault. False as well where it is too long, too deep, or has a member
 * of these twice or a name with escapes: what cannot be vouched for here is for JSON.parse. A byte above 127 is taken as it is. What was found
 * holds until the next call.
 */
export function scanAnswer(answer: Uint8Array): boolean {
  const { length } = answer;
  if (length > capacity) return false;
  bytes.set(answer);
  bytes.fill(0, length, length + endMark);
  places.fill(0);
  return isJsonObject(length);
}

/** Where the value of the member begins and ends; both 0 where there is none. */
export function startOf(member: AnswerMember): number {
  return places[2 * names.indexOf(member)] as number;
}

export function endOf(member: AnswerMember): number {
  return places[2 * names.indexOf(member) + 1] as number;
}

/** Of its value; 0 where there is none. */
export function firstByteOf(member: AnswerMember): number {
  const start = startOf(member);
  return start === 0 ? 0 : (bytes[start] as number);
}

/** Whether its value is this text; false also where it is written with escapes, or is not ASCII. */
export function isText(member: AnswerMember, expected: string): boolean {
  const start = startOf(member);
  const { length } = expected;
  if (firstByteOf(member) !== quote || endOf(member) - start !== length + 2) return false;
  for (let i = 0; i < length; i++) {
    const code = expected.charCodeAt(i);
    if (bytes[start + 1 + i] !== code || code === backslash || code > 0x7f) return false;
  }
  return true;
}

export function isFilledList(member: AnswerMember): boolean {
  return firstByteOf(member) === openBracket && bytes[afterSpace(startOf(member) + 1)] !== closeBracket;
}

/** Its value, with a character for each byte of what is no ASCII in it. */
export function parsedValueOf(member: AnswerMember): unknown {
  return startOf(member) === 0 ? undefined : JSON.parse(text.toString("latin1", startOf(member), endOf(member)));
}

/** Strict JSON; notes the places of the members as it goes. */
function isJsonObject(length: number): boolean {
  let at = afterSpace(0);
  if (bytes[at] !== openBrace) return false;
  let depth = 0;
  /** A bit for each level, the innermost last: 1 in an object. */
  let objects = 0;
  /** Index of the member of the first level at hand in `places`, or `other`. */
  let member = other;
  for (;;) {
    const first = bytes[at] as number;
    if (first === openBrace || first === openBracket) {
      const isObject = first === openBrace;
      if (++depth > mostDepth) return false;
      objects = (objects << 1) | (isObject ? 1 : 0);
      at = afterSpace(at + 1);
      if (bytes[at] !== (isObject ? closeBrace : closeBracket)) {
        if (isObject) {
          if (depth === 1) member = memberAt(at);
          at = afterName(at);
          if (at < 0 || member === fault || !begins(member, depth, at)) return false;
        }
        continue;
      }
    } else {
      at = afterScalar(first, at);
      if (at < 0) return false;
      if (depth === 1 && member >= 0) places[member + 1] = at;
      at = afterSpace(at);
    }
    for (;;) {
      const isObject = (objects & 1) === 1;
      const next = bytes[at];
      if (next === comma) {
        at = afterSpace(at + 1);
        if (isObject) {
          if (depth === 1) member = memberAt(at);
          at = afterName(at);
          if (at < 0 || member === fault || !begins(member, depth, at)) return false;
        }
        break;
      }
      if (next !== (isObject ? closeBrace : closeBracket)) return false;
      at++;
      objects >>>= 1;
      if (--depth === 1 && member >= 0) places[member + 1] = at;
      at = afterSpace(at);
      if (depth === 0) return at === length;
    }
  }
}

/** False where the member was there before. */
function begins(member: number, depth: number, at: number): boolean {
  if (depth !== 1 || member < 0) return true;
  if (places[member] !== 0) return false;
  places[member] = at;
  return true;
}

function afterSpace(from: number): number {
  let at = from;
  for (let code = bytes[at] as number; code <= space; code = bytes[++at] as number) {
    if (code !== space && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
  }
  return at;
}

/** Index in `places` of the member whose name opens at `at`, `other`, or `fault` where the name hides behind escapes. */
function memberAt(at: number): number {
  let end = at + 1;
  for (let code = bytes[end] as number; code !== quote; code = bytes[++end] as number) {
    if (code < space || code === backslash) return fault;
  }
  const length = end - at - 1;
  for (let i = 0; i < nameBytes.length; i++) {
    const name = nameBytes[i] as Uint8Array;
    if (name.length !== length) continue;
    let same = 0;
    while (same < length && bytes[at + 1 + same] === name[same]) same++;
    if (same === length) return 2 * i;
  }
  return other;
}

/** Where the value of a member begins. */
function afterName(from: number): number {
  if (bytes[from] !== quote) return fault;
  const end = afterString(from);
  if (end < 0) return fault;
  const at = afterSpace(end);
  return bytes[at] === colon ? afterSpace(at + 1) : fault;
}

function afterScalar(first: number, at: number): number {
  if (first === quote) return afterString(at);
  if (first === minus || (first >= zero && first <= nine)) return afterNumber(at);
  if (first === 0x74) return afterWord("true", at);
  if (first === 0x66) return afterWord("false", at);
  return first === 0x6e ? afterWord("null", at) : fault;
}

function afterWord(word: string, from: number): number {
  for (let i = 0; i < word.length; i++) if (bytes[from + i] !== word.charCodeAt(i)) return fault;
  return from + word.length;
}

function afterNumber(from: number): number {
  let at = bytes[from] === minus ? from + 1 : from;
  if (bytes[at] === zero) at++;
  else at = afterDigits(at);
  if (at >= 0 && bytes[at] === dot) at = afterDigits(at + 1);
  if (at >= 0 && ((bytes[at] as number) | 0x20) === letterE) {
    at++;
    at = afterDigits(bytes[at] === plus || bytes[at] === minus ? at + 1 : at);
  }
  return at;
}

/** At least one. */
function afterDigits(from: number): number {
  let at = from;
  while ((bytes[at] as number) >= zero && (bytes[at] as number) <= nine) at++;
  return at > from ? at : fault;
}

function afterString(open: number): number {
  let at = open + 1;
  for (;;) {
    if ((at & 3) === 0) while (isPlain(words[at >> 2] as number)) at += 4;
    const code = bytes[at] as number;
    if (code === quote) return at + 1;
    if (code < space) return fault;
    if (code !== backslash) {
      at++;
      continue;
    }
    const escaped = escapes[bytes[at + 1] as number] as number;
    if (escaped === 0) return fault;
    for (let digit = 1; digit < escaped; digit++) if (hexBytes[bytes[at + 1 + digit] as number] === 0) return fault;
    at += 1 + escaped;
  }
}

/**
 * Whether four bytes have among them no quote, no backslash and no control character. A byte is below n where taking n
 * from it borrows, and it has not got the highest bit itself; the quote is made one of those by turning one bit of each.
 */
function isPlain(word: number): boolean {
  const turned = word ^ 0x02020202;
  const slash = word ^ 0x5c5c5c5c;
  return ((((turned - 0x21212121) & ~turned) | ((slash - 0x01010101) & ~slash)) & 0x80808080) === 0;
}
