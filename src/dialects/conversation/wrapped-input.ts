// The input of a custom tool within the JSON arguments of the function that stands for it, unwrapped as it comes.

export function wrappedInput(input: string): string {
  return JSON.stringify({ input });
}

const begin = /^\s*\{\s*"input"\s*:\s*"/;
/** Characters before the text begins: beyond so many the arguments are no wrapped input. */
const longestBegin = 64;
const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/** Gives the text of `input` as far as it is certain. What is no such object comes whole, at its end: the tool's own error says more than ours would. */
export class UnwrappedInput {
  #state: "begin" | "text" | "after" | "other" = "begin";
  #held = "";

  /** The next piece of the arguments; gives what it adds to the text. */
  add(piece: string): string {
    if (this.#state === "after") return "";
    this.#held += piece;
    if (this.#state === "begin") this.#begin();
    return this.#state === "text" ? this.#text() : "";
  }

  /** The arguments are over: gives what is left of the text. */
  end(): string {
    if (this.#state !== "begin" && this.#state !== "other") return "";
    const held = this.#held;
    this.#held = "";
    return inputOf(held) ?? held;
  }

  #begin(): void {
    const found = begin.exec(this.#held);
    if (found) {
      this.#held = this.#held.slice(found[0].length);
      this.#state = "text";
    } else if (this.#held.length > longestBegin) {
      this.#state = "other";
    }
  }

  #text(): string {
    const held = this.#held;
    const parts: string[] = [];
    let from = 0;
    for (;;) {
      const at = nextSpecial(held, from);
      parts.push(held.slice(from, at));
      if (at === held.length) {
        this.#held = "";
        break;
      }
      if (held[at] === '"') {
        this.#state = "after";
        this.#held = "";
        break;
      }
      const length = held[at + 1] === "u" ? 6 : 2;
      if (at + length > held.length) {
        this.#held = held.slice(at);
        break;
      }
      parts.push(unescaped(held.slice(at + 1, at + length)));
      from = at + length;
    }
    return parts.join("");
  }
}

function nextSpecial(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (text[at] === '"' || text[at] === "\\") return at;
  return text.length;
}

function unescaped(escaped: string): string {
  if (escaped.startsWith("u")) return String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return escapes[escaped] ?? escaped;
}

/** From arguments in which `input` is not the first member. */
function inputOf(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const input = (value as { input?: unknown } | null)?.input;
    return typeof input === "string" ? input : undefined;
  } catch {
    return undefined;
  }
}
