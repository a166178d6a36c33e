// Reads the input of a custom tool out of JSON arguments while they arrive. A function replaces such a tool, and the
// arguments of that function contain the input.

export function wrappedInput(input: string): string {
  return JSON.stringify({ input });
}

const begin = /^[ \t\r\n]*\{[ \t\r\n]*"input"[ \t\r\n]*:[ \t\r\n]*"/;
/**
 * Maximum length of the JSON before the text of `input`. If the text begins after more than this length, the arguments
 * are unwrapped only once they are complete.
 */
const maxBeginLength = 64;
const [quote, backslash] = [0x22, 0x5c];
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
};
const hexDigit = /[0-9a-fA-F]/;

/**
 * Returns each piece of the text of `input` as soon as that piece is certain. Arguments in another form are returned
 * unchanged at the end, because an error from the tool itself is more helpful than an error from the gateway.
 */
export class UnwrappedInput {
  #state: "begin" | "text" | "after" | "other" = "begin";
  #buffered = "";
  /**
   * The first half of a surrogate pair. This half waits for the second half, because each output must consist of
   * complete characters.
   */
  #half = "";

  /** Adds the next piece of the arguments, and returns the text that the piece completes. */
  add(piece: string): string {
    if (this.#state === "after") return "";
    this.#buffered += piece;
    if (this.#state === "begin") this.#begin();
    return this.#state === "text" ? this.#whole(this.#text()) : "";
  }

  /** Ends the arguments, and returns the rest of the text. */
  end(): string {
    const isOther = this.#state === "begin" || this.#state === "other";
    const rest = isOther ? (inputOf(this.#buffered) ?? this.#buffered) : this.#half;
    this.#state = "after";
    this.#buffered = "";
    this.#half = "";
    return rest;
  }

  #begin(): void {
    const found = begin.exec(this.#buffered);
    if (found) {
      this.#buffered = this.#buffered.slice(found[0].length);
      this.#state = "text";
    } else if (this.#buffered.length > maxBeginLength) {
      this.#state = "other";
    }
  }

  #text(): string {
    const buffered = this.#buffered;
    const parts: string[] = [];
    this.#buffered = "";
    for (let from = 0; ; ) {
      const at = nextSpecial(buffered, from);
      parts.push(buffered.slice(from, at));
      if (at === buffered.length) break;
      if (buffered.charCodeAt(at) === quote) {
        this.#state = "after";
        break;
      }
      const length = escapeLength(buffered, at);
      if (length === undefined) {
        this.#buffered = buffered.slice(at);
        break;
      }
      parts.push(unescaped(buffered.slice(at + 1, at + length)));
      from = at + length;
    }
    return parts.join("");
  }

  #whole(text: string): string {
    const given = this.#half + text;
    const last = given.charCodeAt(given.length - 1);
    const isHalf = this.#state === "text" && last >= 0xd800 && last < 0xdc00;
    this.#half = isHalf ? given.slice(-1) : "";
    return isHalf ? given.slice(0, -1) : given;
  }
}

function nextSpecial(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote || code === backslash) return at;
  }
  return text.length;
}

/**
 * Returns the length of the escape sequence at `at`, or undefined if the rest of the sequence has not arrived. An
 * invalid `\u` escape counts as 2 characters long.
 */
function escapeLength(text: string, at: number): number | undefined {
  if (at + 1 === text.length) return undefined;
  if (text[at + 1] !== "u") return 2;
  for (let digit = at + 2; digit < at + 6; digit++) {
    if (digit === text.length) return undefined;
    if (!hexDigit.test(text[digit] ?? "")) return 2;
  }
  return 6;
}

/**
 * Returns the character that an escape sequence stands for. An invalid escape stays as it is, because models write
 * paths and patterns without doubling the backslashes.
 */
function unescaped(code: string): string {
  if (code.length === 5) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
  return escapes[code] ?? `\\${code}`;
}

/** Reads `input` from complete arguments in which it is not the first member. */
function inputOf(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const input = (value as { input?: unknown } | null)?.input;
    return typeof input === "string" ? input : undefined;
  } catch {
    return undefined;
  }
}
