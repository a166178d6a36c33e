// Scans the bytes of JSON strings, numbers, words and white space, without creating JavaScript values.

import type { ByteSpan } from "../bytes/byte-span.ts";
import { afterPlain, memory, textBytes } from "./plain-run.ts";

/** Maximum bytes of a text. JSON.parse handles longer texts. */
export const capacity = textBytes;
/**
 * Holds a copy of the current text, in memory that stays in the processor's cache. Valid until the next text is loaded.
 */
export const bytes = new Uint8Array(memory.buffer);
const buffer = Buffer.from(memory.buffer);
/** Length of a run of plain bytes up to which checking each byte is faster than the SIMD search. */
const shortRun = 4;

/** Facts about the bytes scanned so far. The scanning functions update them. */
export const passed = {
  /** Bytes of white space outside of strings. */
  space: 0,
  /** Bytes of escapes in strings beyond the UTF-8 of the characters that they stand for. */
  escapes: 0,
  /** The number of characters and escapes that JSON.stringify may write differently. */
  unusual: 0,
  /** The value of the last number, or NaN until it is parsed. A long number is parsed only if a caller asks for it. */
  number: 0,
  numberStart: 0,
  numberEnd: 0,
  /** Hash of the last scanned member name. */
  hash: 0,
};

export const fault = -1;
export const [quote, comma, colon, minus] = [0x22, 0x2c, 0x3a, 0x2d];
const underscore = 0x5f;
export const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];
const [backslash, plus, dot, slash, zero, nine, space] = [0x5c, 0x2b, 0x2e, 0x2f, 0x30, 0x39, 0x20];
const [letterE, letterU] = [0x65, 0x75];
/**
 * Length of an escape by the byte after the backslash (RFC 8259, 7): 1, or 5 if four hexadecimal digits must follow.
 */
const escapes = new Uint8Array(256);
for (const character of '"\\/bfnrt') escapes[character.charCodeAt(0)] = 1;
escapes[letterU] = 5;
const notHex = 255;
const hexValues = new Uint8Array(256).fill(notHex);
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16);
  hexValues[digit.charCodeAt(0)] = value;
  hexValues[digit.toUpperCase().charCodeAt(0)] = value;
}
/** Has 1 for each byte that is a capital letter or no printable ASCII. */
const unusualInNames = Uint8Array.from({ length: 256 }, (_, code) => {
  const isCapital = code >= 0x41 && code <= 0x5a;
  return code < space || code > 0x7e || isCapital ? 1 : 0;
});
/** Number of decimal digits that a double holds exactly. The powers of ten up to here are exact as well. */
const exactDigits = 15;
const powersOfTen = Array.from({ length: exactDigits + 1 }, (_, exponent) => 10 ** exponent);
/** JSON.stringify writes smaller numbers with an exponent. */
const minPlain = 1e-6;

/** Loads a text. Returns false if it is too long. */
export function load(text: ByteSpan): boolean {
  const { length } = text;
  if (length > capacity) return false;
  text.copyTo(bytes, 0);
  // A zero byte after the text ends every string, number or word.
  bytes[length] = 0;
  passed.space = passed.escapes = passed.unusual = 0;
  return true;
}

export function isDigit(code: number): boolean {
  return code >= zero && code <= nine;
}

/** Returns the text between `start` and `end`, with one character for each byte. */
export function latin1(start: number, end: number): string {
  return buffer.toString("latin1", start, end);
}

/**
 * Recently decoded texts by their hash. Most texts repeat, and a Map finds a key faster if it gets the same string
 * object.
 */
const known = new Array<string>(1_024).fill("");

/** Decodes the JSON string from `start` to `end`, quotes included. The string must not be longer than a member name. */
export function textAt(start: number, end: number): string {
  let hash = 0;
  for (let at = start + 1; at < end - 1; at++) {
    const code = bytes[at] as number;
    if (code === backslash || code > 0x7f) return String(JSON.parse(buffer.toString("utf8", start, end)));
    hash = (Math.imul(hash, 31) + code) | 0;
  }
  const slot = hash & (known.length - 1);
  const before = known[slot] as string;
  if (isText(before, start + 1, end - 1)) return before;
  const text = latin1(start + 1, end - 1);
  known[slot] = text;
  return text;
}

function isText(expected: string, start: number, end: number): boolean {
  const { length } = expected;
  if (end - start !== length) return false;
  for (let i = 0; i < length; i++) if (bytes[start + i] !== expected.charCodeAt(i)) return false;
  return true;
}

/** Reports whether the bytes from `start` to `end` equal `expected`. */
export function isSame(expected: Uint8Array, start: number, end: number): boolean {
  const { length } = expected;
  if (end - start !== length) return false;
  for (let i = 0; i < length; i++) if (bytes[start + i] !== expected[i]) return false;
  return true;
}

export function afterSpace(from: number): number {
  let at = from;
  for (let code = bytes[at] as number; code <= space; code = bytes[++at] as number) {
    if (code !== space && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
  }
  if (at !== from) passed.space += at - from;
  return at;
}

export function afterWord(word: string, from: number): number {
  for (let i = 0; i < word.length; i++) if (bytes[from + i] !== word.charCodeAt(i)) return fault;
  return from + word.length;
}

/**
 * Scans the member name whose quote is at `open` and stores its hash in `passed.hash`. Returns the offset after the
 * name, or a fault if the name contains escapes.
 */
export function afterName(open: number): number {
  if (bytes[open] !== quote) return fault;
  let at = open + 1;
  let hash = 0;
  for (let code = bytes[at] as number; code !== quote; code = bytes[++at] as number) {
    if (code < space || code === backslash) return fault;
    hash = (Math.imul(hash, 31) + code) | 0;
  }
  passed.hash = hash;
  return at + 1;
}

/** Reports whether a name is printable ASCII without capitals, so that every parser reads it as the same name. */
export function isPlainName(start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (unusualInNames[bytes[at] as number] !== 0) return false;
  return true;
}

/** Returns the hash that `afterName` would give the name. */
export function hashOf(name: Uint8Array): number {
  return name.reduce((hash, code) => (Math.imul(hash, 31) + code) | 0, 0);
}

/**
 * Reports whether a name is printable ASCII without capitals. Sets `passed.hash` to the hash of the name without dashes
 * and underscores.
 */
export function isPlainWithBareHash(start: number, end: number): boolean {
  let hash = 0;
  for (let at = start; at < end; at++) {
    const code = bytes[at] as number;
    if (unusualInNames[code] !== 0) return false;
    if (code !== underscore && code !== minus) hash = (Math.imul(hash, 31) + code) | 0;
  }
  passed.hash = hash;
  return true;
}

export function afterColon(from: number): number {
  const at = afterSpace(from);
  return bytes[at] === colon ? afterSpace(at + 1) : fault;
}

export function afterNumber(from: number): number {
  const first = bytes[from] === minus ? from + 1 : from;
  let at = first;
  let whole = 0;
  if (bytes[at] === zero) at++;
  else {
    for (let code = bytes[at] as number; isDigit(code); code = bytes[++at] as number) whole = whole * 10 + code - zero;
  }
  if (at === first) return fault;
  const next = bytes[at] as number;
  if (next === dot || (next | 0x20) === letterE || at - first > exactDigits)
    return afterFraction(from, first, at, whole);
  if (whole === 0 && first !== from) passed.unusual++;
  passed.number = first === from ? whole : -whole;
  return at;
}

/** Returns the value of the last number. */
export function numberPassed(): number {
  if (Number.isNaN(passed.number)) passed.number = Number(latin1(passed.numberStart, passed.numberEnd));
  return passed.number;
}

/** A number with more characters than this may exceed the range of a double, so its value is checked. */
const longNumber = 300;

/** Scans a number that is not a short integer. The digits before `from` were already read. */
function afterFraction(start: number, first: number, from: number, whole: number): number {
  let at = from;
  let digits = at - first;
  let decimals = 0;
  let mantissa = whole;
  if (bytes[at] === dot) {
    for (let code = bytes[++at] as number; isDigit(code); code = bytes[++at] as number) {
      mantissa = mantissa * 10 + code - zero;
      decimals++;
    }
    if (decimals === 0) return fault;
    digits += decimals;
  }
  const isPlain = ((bytes[at] as number) | 0x20) !== letterE;
  if (!isPlain) {
    const sign = bytes[at + 1];
    const exponent = sign === plus || sign === minus ? at + 2 : at + 1;
    for (at = exponent; isDigit(bytes[at] as number); ) at++;
    if (at === exponent) return fault;
  }
  if (isPlain && digits <= exactDigits) {
    // Both numbers are exact, so the quotient is rounded like the number that the digits stand for.
    const size = mantissa / (powersOfTen[decimals] as number);
    if (bytes[at - 1] === zero || size < minPlain) passed.unusual++;
    passed.number = first === start ? size : -size;
  } else {
    passed.unusual++;
    passed.number = Number.NaN;
    passed.numberStart = start;
    passed.numberEnd = at;
    // A number beyond the range of a double requires the full parser, which refuses it.
    if ((at - first > longNumber || !isPlain) && !Number.isFinite(numberPassed())) return fault;
  }
  return at;
}

export function afterString(open: number): number {
  let at = open + 1;
  /** Offset after an escaped first half of a surrogate pair. */
  let halfEnd = 0;
  for (;;) {
    at = afterRun(at);
    const code = bytes[at] as number;
    if (code === quote) return at + 1;
    if (code !== backslash) return fault;
    const letter = bytes[at + 1] as number;
    const length = escapes[letter] as number;
    if (length === 0) return fault;
    if (length === 1) {
      passed.escapes++;
      if (letter === slash) passed.unusual++;
      at += 2;
      continue;
    }
    const unit = hexAt(at + 2);
    if (unit < 0) return fault;
    passed.unusual++;
    const isSecond = unit >= 0xdc00 && unit <= 0xdfff && halfEnd === at;
    // A lone surrogate becomes U+FFFD, which takes three bytes. A pair takes four.
    passed.escapes += isSecond ? 5 : unit < 0x80 ? 5 : unit < 0x800 ? 4 : 3;
    at += 6;
    halfEnd = unit >= 0xd800 && unit <= 0xdbff ? at : 0;
  }
}

function hexAt(at: number): number {
  let unit = 0;
  for (let i = at; i < at + 4; i++) {
    const value = hexValues[bytes[i] as number] as number;
    if (value === notHex) return fault;
    unit = (unit << 4) | value;
  }
  return unit;
}

/** Finds the next quote, backslash or control character. */
function afterRun(from: number): number {
  let at = from;
  for (let code = bytes[at] as number; code >= space && code !== quote && code !== backslash; ) {
    at++;
    if (at - from === shortRun) at = afterPlain(at);
    code = bytes[at] as number;
  }
  return at;
}
