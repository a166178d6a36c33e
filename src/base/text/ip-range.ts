// Reads IP addresses and CIDR ranges strictly, writes them in one form and compares them.

/**
 * An IPv4 or IPv6 range, in 32-bit words with host bits zero. An IPv6 address or range within `::ffff:0:0/96` becomes
 * the IPv4 one that it contains (RFC 4291, 2.5.5.2). Any other IPv6 range, even `::/0`, contains no IPv4 address.
 */
export interface IpRange {
  /** Unsigned words: one for IPv4, four for IPv6. */
  readonly words: readonly number[];
  /** Number of leading bits that must match: 0 to 32, or 0 to 128. */
  readonly prefix: number;
}

const wordBits = 32;
const mappedBits = 96;

/**
 * Reads `192.0.2.1`, `192.0.2.0/24` or `2001:db8::/32`. Returns undefined for anything else. Bits after the prefix are
 * cleared.
 */
export function parseRange(text: string): IpRange | undefined {
  const slash = text.indexOf("/");
  const words = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (!words) return undefined;
  const bits = words.length * wordBits;
  const prefix = slash < 0 ? bits : parsePrefix(text.slice(slash + 1), bits);
  if (prefix === undefined) return undefined;
  const mapped = prefix >= mappedBits ? mappedIpv4(words) : undefined;
  return mapped ? masked(mapped, prefix - mappedBits) : masked(words, prefix);
}

/** Formats by RFC 4632 for IPv4 and RFC 5952 for IPv6. A single address has no `/`. */
export function formatRange({ words, prefix }: IpRange): string {
  const [first = 0] = words;
  const address = words.length === 1 ? [24, 16, 8, 0].map((shift) => (first >>> shift) & 0xff).join(".") : ipv6(words);
  return prefix === words.length * wordBits ? address : `${address}/${prefix}`;
}

/** Reports whether one of the ranges contains the address. False for a text that is no address. */
export function rangesContain(ranges: readonly IpRange[], address: string): boolean {
  const words = parseAddress(address);
  if (!words) return false;
  const plain = mappedIpv4(words) ?? words;
  return ranges.some((range) => covers(range, plain));
}

/** Reports whether `outer` contains every address of `inner`. */
export function rangeCovers(outer: IpRange, inner: IpRange): boolean {
  return outer.prefix <= inner.prefix && covers(outer, inner.words);
}

function covers({ words, prefix }: IpRange, address: readonly number[]): boolean {
  if (words.length !== address.length) return false;
  return words.every((word, i) => ((word ^ (address[i] ?? 0)) & mask(prefix - i * wordBits)) === 0);
}

/** Returns a mask for the first `bits` of a word. */
function mask(bits: number): number {
  // JavaScript treats a shift by 32 as a shift by 0.
  if (bits <= 0) return 0;
  return bits >= wordBits ? -1 : -1 << (wordBits - bits);
}

function masked(words: readonly number[], prefix: number): IpRange {
  return { words: words.map((word, i) => (word & mask(prefix - i * wordBits)) >>> 0), prefix };
}

function mappedIpv4([a, b, c, d]: readonly number[]): readonly number[] | undefined {
  return d !== undefined && a === 0 && b === 0 && c === 0xffff ? [d] : undefined;
}

function parsePrefix(text: string, bits: number): number | undefined {
  if (!/^(?:0|[1-9]\d{0,2})$/.test(text)) return undefined;
  const prefix = Number(text);
  return prefix <= bits ? prefix : undefined;
}

function parseAddress(text: string): readonly number[] | undefined {
  if (!text.includes(":")) {
    const word = parseIpv4(text);
    return word === undefined ? undefined : [word];
  }
  return parseIpv6(text);
}

/** Parses four decimal numbers. A leading zero is refused, since some readers would read octal. */
function parseIpv4(text: string): number | undefined {
  const parts = text.split(".", 5);
  if (parts.length !== 4) return undefined;
  let word = 0;
  for (const part of parts) {
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    word = word * 256 + Number(part);
  }
  return word;
}

/** Parses an address by RFC 4291, 2.2, without zones. */
function parseIpv6(text: string): readonly number[] | undefined {
  const gap = text.indexOf("::");
  const head = gap < 0 ? text : text.slice(0, gap);
  const tail = gap < 0 ? "" : text.slice(gap + 2);
  const left = parseGroups(head, gap < 0);
  const right = parseGroups(tail, true);
  if (!left || !right) return undefined;
  const missing = 8 - left.length - right.length;
  if (gap < 0 ? missing !== 0 : missing < 1) return undefined;
  const groups = [...left, ...Array<number>(missing).fill(0), ...right];
  return [0, 2, 4, 6].map((i) => ((groups[i] ?? 0) * 0x10000 + (groups[i + 1] ?? 0)) >>> 0);
}

/** Parses groups of 16 bits. If `last`, the text ends here and the last two groups may be an IPv4 address. */
function parseGroups(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":", 9);
  for (const [i, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const word = last && i === parts.length - 1 ? parseIpv4(part) : undefined;
    if (word === undefined) return undefined;
    groups.push(word >>> 16, word & 0xffff);
  }
  return groups;
}

function ipv6(words: readonly number[]): string {
  const groups = words.flatMap((word) => [(word >>> 16).toString(16), (word & 0xffff).toString(16)]);
  const text = groups.join(":");
  // Finds the longest run of at least two zeros, or the first of equally long runs.
  const runs = [...text.matchAll(/(?<=^|:)0(?::0)+(?=:|$)/g)].sort((a, b) => b[0].length - a[0].length);
  const run = runs[0];
  if (!run) return text;
  return `${text.slice(0, run.index).replace(/:$/, "")}::${text.slice(run.index + run[0].length).replace(/^:/, "")}`;
}
