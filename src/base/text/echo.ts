// Removes parts of a request from a text: the error of a model server may quote the prompt, and stored errors must not.

/** Minimum length of a quoted part that is removed. Any two texts may share shorter words. */
const shortestEcho = 8;
/** Maximum bytes of a request that is compared with the error text. Comparing a longer request takes too long. */
export const maxCompared = 64 * 1024;
/** Number of characters of the text that are checked and returned. */
const maxTextLength = 400;
const mark = "[…]";

/** Matches the names of members in a request. They are not secret, and errors mention them. */
const memberNames = /"[a-z_]{1,40}"\s*:/g;
const escapes = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g;
const spaces = /[\s\p{Cc}]+/gu;

/**
 * Returns the start of `text` without parts that quote `request`, which is JSON, valid or not. `known` is text that may
 * stay, such as the name of the model.
 */
export function withoutEcho(text: string, request: string, known: string): string {
  const plain = text.slice(0, maxTextLength).replace(spaces, " ");
  const asked = said(request, known);
  const lower = folded(plain);
  let kept = "";
  let from = 0;
  for (let start = 0; start + shortestEcho <= plain.length; start++) {
    let end = start + shortestEcho;
    if (!asked.includes(lower.slice(start, end))) continue;
    while (end < plain.length && asked.includes(lower.slice(start, end + 1))) end++;
    kept += plain.slice(from, start) + mark;
    from = end;
    start = end - 1;
  }
  return kept + plain.slice(from);
}

/** Returns the request's text with escapes resolved, as an error would quote it. */
function said(request: string, known: string): string {
  let text = request.replace(memberNames, " ").replace(escapes, (_, unit: string | undefined, letter: string) => {
    if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit, 16));
    return /["\\/]/.test(letter) ? letter : " ";
  });
  if (known.length >= shortestEcho) text = text.replaceAll(known, "\0");
  return folded(text.replace(/\s+/g, " "));
}

/** Lower-cases only ASCII letters, because some other letters change their length with their case. */
function folded(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
