// Writes a value as JSON in any of the ways in which clients do: space, escapes, numbers, and what goes wrong with them.
import type { ValueMaker } from "./value-maker.ts";

const spaces = ["", "", "", "", " ", "\n", "\t", "\r\n  "];
const brokenBy = '{}[]",:\\ \n\t0123456789eE+-.truefalsn\u0001/bu\u007f';

/** Writes JSON as clients do; where it `errs`, a member may be there twice. */
export class JsonWriter {
  readonly #maker: ValueMaker;
  readonly #isPlain: boolean;

  constructor(maker: ValueMaker) {
    this.#maker = maker;
    this.#isPlain = maker.chance(0.4);
  }

  write(value: unknown): string {
    if (typeof value === "string") return this.#text(value);
    if (typeof value === "number") return this.#number(value);
    if (Array.isArray(value)) return `[${this.#list(value.map((item) => this.write(item)))}]`;
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const members = Object.entries(value).map(
      ([name, member]) => `${this.#text(name)}${this.#space()}:${this.#space()}${this.write(member)}`,
    );
    if (this.#maker.chance(0.1)) members.reverse();
    if (members.length > 0 && this.#maker.chance(0.01)) members.push(this.#maker.pick(members));
    return `{${this.#list(members)}}`;
  }

  /** With a character or two changed, put in or left out. */
  broken(text: string): string {
    let result = text;
    do {
      const at = Math.floor(this.#maker.fraction() * result.length);
      const put = this.#maker.pick(["", this.#maker.pick([...brokenBy])]);
      result = result.slice(0, at) + put + result.slice(at + this.#maker.pick([0, 1]));
    } while (this.#maker.chance(0.4));
    return result;
  }

  #list(items: readonly string[]): string {
    return this.#space() + items.join(`${this.#space()},${this.#space()}`) + this.#space();
  }

  #space(): string {
    return this.#isPlain ? "" : this.#maker.pick(spaces);
  }

  #text(text: string): string {
    if (this.#isPlain || this.#maker.chance(0.7)) return JSON.stringify(text);
    const escaped = Array.from({ length: text.length }, (_, i) => {
      const unit = text.charCodeAt(i);
      if (unit > 0x7e || this.#maker.chance(0.2)) return `\\u${unit.toString(16).padStart(4, "0")}`;
      return unit === 0x2f ? "\\/" : JSON.stringify(text.charAt(i)).slice(1, -1);
    });
    return `"${escaped.join("")}"`;
  }

  #number(value: number): string {
    const text = JSON.stringify(value);
    if (this.#isPlain || this.#maker.chance(0.7)) return text;
    return this.#maker.pick([text, value.toExponential(), `${text}${text.includes(".") ? "0" : ".0"}`, `${text}e0`]);
  }
}
