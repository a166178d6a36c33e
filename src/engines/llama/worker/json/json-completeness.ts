// Follows JSON text piece by piece and detects the end of its outermost object or array.

/**
 * Detects whether a JSON text is complete. Assumes well-formed JSON, which the grammar ensures, and tracks only
 * nesting and strings.
 */
export class JsonCompleteness {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #opened = false;

  /** True once the outermost bracket is closed. */
  get complete(): boolean {
    return this.#opened && this.#depth === 0;
  }

  push(text: string): void {
    for (const character of text) {
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (character === "\\") this.#escaped = true;
        else if (character === '"') this.#inString = false;
      } else if (character === '"') this.#inString = true;
      else if (character === "{" || character === "[") {
        this.#depth += 1;
        this.#opened = true;
      } else if (character === "}" || character === "]") this.#depth -= 1;
    }
  }
}
