// Makes tokens of texts so that each leads to one other alone: what a model says then follows from the token it begins with.

const shortestPiece = 2;
const defaultPiece = 4;

export class TokenChains {
  readonly successors = new Map<number, number>();
  readonly pieces: string[] = [];
  readonly #firstToken: number;
  /** What begins a text that is the same to its end. */
  readonly #known = new Map<string, { token: number; length: number }>();

  /** @param firstToken the number of the first token made here */
  constructor(firstToken: number) {
    this.#firstToken = firstToken;
  }

  /** From the token `sign` the model writes the parts, then `end`. Returns how many tokens it writes. */
  add(sign: number, parts: readonly string[], end: number): number {
    const known = this.#known.get(parts.join("\0"));
    if (known) {
      this.successors.set(sign, known.token);
      return known.length;
    }
    const pieces = split(parts, new Set(this.pieces));
    if (pieces === undefined) throw new Error(`No tokens of their own can be made of: ${parts.join("")}`);
    const first = this.#firstToken + this.pieces.length;
    this.pieces.push(...pieces);
    const tokens = [sign, ...pieces.map((_, index) => first + index), end];
    for (const [index, token] of tokens.slice(0, -1).entries()) this.successors.set(token, tokens[index + 1] ?? end);
    this.#known.set(parts.join("\0"), { token: first, length: pieces.length + 1 });
    return pieces.length + 1;
  }
}

/** Pieces that differ from each other and from all that are `used`; undefined where there are none. */
function split(parts: readonly string[], used: ReadonlySet<string>): string[] | undefined {
  const [part, ...others] = parts;
  if (part === undefined) return [];
  if (part === "") return split(others, used);
  const lengths = Array.from({ length: part.length - shortestPiece + 1 }, (_, index) => index + shortestPiece);
  const usual = [
    ...lengths.filter((length) => length >= defaultPiece),
    ...lengths.filter((length) => length < defaultPiece),
  ];
  for (const length of usual) {
    const piece = part.slice(0, length);
    if (used.has(piece)) continue;
    const rest = split([part.slice(length), ...others], new Set([...used, piece]));
    if (rest) return [piece, ...rest];
  }
  return undefined;
}
