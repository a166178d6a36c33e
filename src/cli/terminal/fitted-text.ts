// Breaks text into lines of limited width, at spaces. A word that is too long for a line is broken too.

/** Breaks the text into at least one line. `width` is in columns, 1 or more. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap((whole) => pieces(whole, width))) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line === "" || Bun.stringWidth(longer) <= width) line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}

function pieces(word: string, width: number): string[] {
  if (Bun.stringWidth(word) <= width) return [word];
  const found: string[] = [];
  let piece = "";
  for (const character of word) {
    if (piece !== "" && Bun.stringWidth(piece + character) > width) {
      found.push(piece);
      piece = "";
    }
    piece += character;
  }
  return [...found, piece];
}

/** Minimum width of a column. If the line is too narrow for all columns, it becomes longer instead. */
const minWidth = 8;

/**
 * Reports whether a word is a number, a date or a time. If such a word were broken, each part would look like another
 * value.
 */
function isFigure(word: string): boolean {
  return /\p{N}/u.test(word) && !/\p{L}/u.test(word);
}

/**
 * Returns the widths of columns, two spaces apart, so that a line fits. Columns that break between words shrink first,
 * then text columns, then headings of number columns. Numbers are never broken, even if the line becomes too long.
 * `rows` includes the header; `figures` has the indexes of the number columns.
 */
export function fittedWidths(
  rows: readonly (readonly string[])[],
  lineWidth: number | undefined,
  figures: readonly number[] = [],
): number[] {
  const columns = (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ""));
  const widths = columns.map((cells) => widest(cells));
  if (lineWidth === undefined) return widths;
  const room = lineWidth - 2 * (widths.length - 1);
  const words = columns.map((cells) => widest(cells.flatMap((cell) => cell.split(" "))));
  const whole = columns.map((cells) => widest(cells.flatMap((cell) => cell.split(" ")).filter(isFigure)));
  const least = widths.map((width, column) => Math.max(Math.min(width, minWidth), whole[column] ?? 0));
  narrow(widths, words, room);
  narrow(
    widths,
    widths.map((width, column) => (figures.includes(column) ? width : (least[column] ?? width))),
    room,
  );
  narrow(widths, least, room);
  return widths;
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map((text) => Bun.stringWidth(text)));
}

/**
 * Shrinks the widest columns by one character at a time until the line fits. No column gets smaller than its entry in
 * `least`.
 */
function narrow(widths: number[], least: readonly number[], room: number): void {
  for (let excess = widths.reduce((sum, width) => sum + width, 0) - room; excess > 0; excess--) {
    const spare = widths.map((width, column) => (width > (least[column] ?? 0) ? width : 0));
    const most = spare.indexOf(Math.max(...spare));
    if ((spare[most] ?? 0) === 0) return;
    widths[most] = (widths[most] ?? 0) - 1;
  }
}

/** Minimum width of a text, even if the terminal is narrower. */
const minWrapped = 20;

/**
 * Breaks text into lines between words only. If `columns` is undefined, returns one line of any length. `used` is the
 * width of the text that precedes the first line, beyond the margin.
 */
export function paragraph(text: string, columns: number | undefined, margin: number, used = 0): string[] {
  if (columns === undefined) return [text];
  const width = Math.max(minWrapped, columns - 1 - margin);
  const lines: string[] = [];
  let line = "";
  let room = width - used;
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (Bun.stringWidth(longer) <= room || line === "") {
      line = longer;
      continue;
    }
    lines.push(line);
    line = word;
    room = width;
  }
  return [...lines, line];
}
