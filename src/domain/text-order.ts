// The order of very many texts, found in pieces of a few milliseconds, between which others have their turn.

/** Texts of one piece. */
const pieceTexts = 5_000;
/** More texts than that cannot be ordered; with the characters below it makes a number that is exact. */
const placeFactor = 2 ** 18;
const placeCharacters = 5;
const characterBits = 7;

/**
 * Their places, in about their order: by some characters behind the beginning that all of them share. To sort the texts
 * themselves would take ten times as long. Yields after each piece of the work, a millisecond or two; the texts stay as
 * they are meanwhile.
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
  const places = new Float64Array(texts.length);
  for (const [i, text] of texts.entries()) {
    places[i] = placeOf(text, shared) * placeFactor + i;
    if (i % pieceTexts === pieceTexts - 1) yield;
  }
  places.sort();
  if (places.length > pieceTexts) yield;
  return places.map((place) => place % placeFactor);
}

function placeOf(text: string, from: number): number {
  let place = 0;
  for (let i = from; i < from + placeCharacters; i++) {
    const unit = i < text.length ? text.charCodeAt(i) : 0;
    place = place * 2 ** characterBits + Math.min(unit, 2 ** characterBits - 1);
  }
  return place;
}
