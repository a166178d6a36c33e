// Finds markers in text that arrives in pieces. Holds text back only while it could become a marker.

export interface ScannedText {
  /** Text that may be delivered. It contains no marker and cannot become one. */
  text: string;
  /** The marker that follows `text` and is removed. Undefined if none was found yet. */
  marker: string | undefined;
}

interface Piece {
  text: string;
  /** True for the text of a control token (e.g. `<|im_end|>`). It can be part of a marker, but is never delivered. */
  hidden: boolean;
}

export class TextScanner {
  #markers: readonly string[] = [];
  #firstCharacters = new Set<string>();
  #pieces: Piece[] = [];
  #raw = "";

  /** Replaces the markers, also for text that is held back now. Empty markers are ignored. */
  setMarkers(markers: Iterable<string>): void {
    this.#markers = [...new Set(markers)].filter((marker) => marker !== "");
    this.#firstCharacters = new Set(this.#markers.map((marker) => marker.charAt(0)));
  }

  push(text: string, hidden: boolean): void {
    if (text === "") return;
    this.#pieces.push({ text, hidden });
    this.#raw += text;
  }

  /** Returns the text up to the next marker. Call it again until it returns no marker. */
  next(): ScannedText {
    if (!this.#mayHoldMarker()) return { text: this.#take(this.#raw.length), marker: undefined };
    let found: string | undefined;
    let index = -1;
    for (const marker of this.#markers) {
      const at = this.#raw.indexOf(marker);
      if (at < 0) continue;
      if (found === undefined || at < index || (at === index && marker.length > found.length)) {
        found = marker;
        index = at;
      }
    }
    if (found === undefined) return { text: this.#take(this.#raw.length - this.#bufferedLength()), marker: undefined };
    const text = this.#take(index);
    this.#take(found.length);
    return { text, marker: found };
  }

  /** Returns the text that is still held back, at the end of the reply. */
  flush(): string {
    return this.#take(this.#raw.length);
  }

  /**
   * Returns all remaining text, including the text of control tokens, for a caller that no longer needs the
   * scanner.
   */
  takeRaw(): string {
    const raw = this.#raw;
    this.#take(raw.length);
    return raw;
  }

  #mayHoldMarker(): boolean {
    for (const character of this.#firstCharacters) if (this.#raw.includes(character)) return true;
    return false;
  }

  /** Returns the length of the longest end of the text that could begin a marker. */
  #bufferedLength(): number {
    let held = 0;
    for (const marker of this.#markers) {
      for (let length = Math.min(marker.length - 1, this.#raw.length); length > held; length--) {
        if (this.#raw.endsWith(marker.slice(0, length))) {
          held = length;
          break;
        }
      }
    }
    return held;
  }

  #take(length: number): string {
    let visible = "";
    let remaining = length;
    while (remaining > 0) {
      const piece = this.#pieces[0];
      if (piece === undefined) break;
      const part = piece.text.slice(0, remaining);
      if (!piece.hidden) visible += part;
      if (part.length === piece.text.length) this.#pieces.shift();
      else piece.text = piece.text.slice(part.length);
      remaining -= part.length;
    }
    this.#raw = this.#raw.slice(length);
    return visible;
  }
}
