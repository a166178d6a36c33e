// IP addresses and CIDR ranges as text: read strictly, written in one form, compared.

/**
 * IPv4 or IPv6, in 32-bit words, host bits zero. An IPv6 address or range within `::ffff:0:0/96` is the IPv4 one that it
 * carries (RFC 4291, 2.5.5.2); any other IPv6 range, `::/0` included, has no IPv4 address in it.
 */
export interface IpRange {
  /** One word for IPv4, four for IPv6; unsigned. */
  readonly words: readonly number[];
  /** Leading bits that count: 0 to 32 or 128. */
  readonly prefix: number;
}

const wordBits = 32;
const mappedBits = 96;

/** `192.0.2.1`, `192.0.2.0/24`, `2001:db8::/32`; undefined for anything else. Bits after the prefix are cleared. */
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

/** RFC 4632 for IPv4, RFC 5952 for IPv6; a single address has no `/`. */
export function formatRange({ words, prefix }: IpRange): string {
  const [first = 0] = words;
  const address = words.length === 1 ? [24, 16, 8, 0].map((shift) => (first >>> shift) & 0xff).join(".") : ipv6(words);
  return prefix === words.length * wordBits ? address : `${address}/${prefix}`;
}

/** Whether any of the ranges has the address in it; false as well for a text that is no address. */
export function rangesContain(ranges: readonly IpRange[], address: string): boolean {
  const words = parseAddress(address);
  if (!words) return false;
  const plain = mappedIpv4(words) ?? words;
  return ranges.some((range) => covers(range, plain));
}

/** Whether every address of `inner` is in `outer`. */
export function rangeCovers(outer: IpRange, inner: IpRange): boolean {
  return outer.prefix <= inner.prefix && covers(outer, inner.words);
}

function covers({ words, prefix }: IpRange, address: readonly number[]): boolean {
  if (words.length !== address.length) return false;
  return words.every((word, i) => ((word ^ (address[i] ?? 0)) & mask(prefix - i * wordBits)) === 0);
}

/** The bit mask of a word of which the first `bits` count. */
function mask(bits: number): number {
  // A shift by 32 would shift by nothing.
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

/** Four decimal numbers: a leading zero would be octal to some readers. */
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

/** RFC 4291, 2.2, without zones. */
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

/** Groups of 16 bits; the last two may be an IPv4 address where `last`, that is where the text ends. */
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
  // The longest run of at least two zeros, the first of several.
  const runs = [...text.matchAll(/(?<=^|:)0(?::0)+(?=:|$)/g)].sort((a, b) => b[0].length - a[0].length);
  const run = runs[0];
  if (!run) return text;
  return `${text.slice(0, run.index).replace(/:$/, "")}::${text.slice(run.index + run[0].length).replace(/^:/, "")}`;
}
