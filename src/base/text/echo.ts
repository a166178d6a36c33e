// Cuts out of a text what it repeats of a request: a model server's error may quote the prompt, and what is kept of errors must not.

/** Shorter repetitions are words that any two texts may share. */
const shortestEcho = 8;
/** Bytes of a request beyond which nobody should compare: it takes too long. */
export const maxCompared = 64 * 1024;
/** Characters of a text that are looked through, and kept. */
const maxTextLength = 400;
const mark = "[…]";

/** Names of members, as requests have them: they are nobody's secret, and errors speak of them. */
const memberNames = /"[a-z_]{1,40}"\s*:/g;
const escapes = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g;
const spaces = /[\s\p{Cc}]+/gu;

/** `request`: JSON, good or not. `known`: may be repeated, such as the name of the model. The start of the text, cut. */
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

/** The text of the request with its escapes resolved, as an error that repeats it would show it. */
function said(request: string, known: string): string {
  let text = request.replace(memberNames, " ").replace(escapes, (_, unit: string | undefined, letter: string) => {
    if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit, 16));
    return /["\\/]/.test(letter) ? letter : " ";
  });
  if (known.length >= shortestEcho) text = text.replaceAll(known, "\0");
  return folded(text.replace(/\s+/g, " "));
}

/** ASCII alone: the case of some other letters changes how long a text is. */
function folded(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
