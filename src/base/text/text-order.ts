// Sorts very many texts in pieces of a few milliseconds, so that other work can run between them.

/** The number of texts in one piece. */
const pieceTexts = 5_000;
const characterBits = 7;
/**
 * Number of bits of an integer that a double holds exactly. Each sort key holds a few characters of a text and its
 * position.
 */
const exactBits = 53;

/**
 * Returns the positions of the texts in approximate order: only a few characters after the common prefix are compared.
 * Sorting the texts themselves would take ten times as long. Yields after each millisecond or two of work. The texts
 * must not change meanwhile.
 */
export function* inOrderOfTexts(texts: readonly string[]): Generator<undefined, Float64Array> {
  const [first = ""] = texts;
  let shared = first.length;
  for (const [i, text] of texts.entries()) {
    let same = 0;
    while (same < shared && text.charCodeAt(same) === first.charCodeAt(same)) same++;
    shared = same;
    if (i % pieceTexts === pieceTexts - 1) yield;
  }
  const positions = new Float64Array(texts.length);
  const characters = Math.floor((exactBits - Math.ceil(Math.log2(texts.length + 1))) / characterBits);
  for (const [i, text] of texts.entries()) {
    positions[i] = positionOf(text, shared, characters) * texts.length + i;
    if (i % pieceTexts === pieceTexts - 1) yield;
  }
  positions.sort();
  if (positions.length > pieceTexts) yield;
  return positions.map((position) => position % texts.length);
}

function positionOf(text: string, from: number, characters: number): number {
  let position = 0;
  for (let i = from; i < from + characters; i++) {
    const unit = i < text.length ? text.charCodeAt(i) : 0;
    position = position * 2 ** characterBits + Math.min(unit, 2 ** characterBits - 1);
  }
  return position;
}
