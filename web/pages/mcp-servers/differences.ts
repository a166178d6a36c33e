// Compares two texts line by line, and word by word in changed lines.

export interface Piece {
  text: string;
  /** True for the changed piece of a line that otherwise stayed the same. */
  isChanged: boolean;
}

export interface Line {
  kind: "same" | "was" | "is";
  pieces: readonly Piece[];
}

interface Step {
  kind: Line["kind"];
  text: string;
}

/**
 * Maximum product of both lengths, because time and memory of the comparison grow with that product. Above the maximum,
 * everything counts as changed.
 */
const maxCells = 1_000_000;

export function differences(before: string, after: string): Line[] {
  const lines: Line[] = [];
  let was: string[] = [];
  let is: string[] = [];
  const end = () => {
    lines.push(...changedLines(was, is));
    was = [];
    is = [];
  };
  for (const { kind, text } of compared(before.split("\n"), after.split("\n"))) {
    if (kind === "was") was.push(text);
    else if (kind === "is") is.push(text);
    else {
      end();
      lines.push({ kind, pieces: [{ text, isChanged: false }] });
    }
  }
  end();
  return lines;
}

/** Compares replaced lines word by word. */
function changedLines(was: readonly string[], is: readonly string[]): Line[] {
  if (was.length === 0 || is.length === 0) {
    const kind = was.length === 0 ? "is" : "was";
    return [...was, ...is].map((text) => ({ kind, pieces: [{ text, isChanged: false }] }));
  }
  const steps = compared(wordsOf(was), wordsOf(is));
  return [...sideOf("was", steps), ...sideOf("is", steps)];
}

function wordsOf(lines: readonly string[]): string[] {
  return lines.join("\n").match(/\n|[^\S\n]+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

function sideOf(kind: "was" | "is", steps: readonly Step[]): Line[] {
  const lines: Piece[][] = [[]];
  for (const step of steps) {
    if (step.kind !== "same" && step.kind !== kind) continue;
    const isChanged = step.kind === kind;
    const line = lines.at(-1) ?? [];
    const last = line.at(-1);
    if (step.text === "\n") lines.push([]);
    else if (last?.isChanged === isChanged) last.text += step.text;
    else line.push({ text: step.text, isChanged });
  }
  return lines.map((pieces) => ({ kind, pieces }));
}

/** Returns the steps from `before` to `after`: common texts, removed texts and added texts, in order. */
function compared(before: readonly string[], after: readonly string[]): Step[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const [beforeEnd, afterEnd] = [before.length - end, after.length - end];
  return [
    ...stepsOf("same", before.slice(0, start)),
    ...comparedWhole(before.slice(start, beforeEnd), after.slice(start, afterEnd)),
    ...stepsOf("same", before.slice(beforeEnd)),
  ];
}

function comparedWhole(was: readonly string[], is: readonly string[]): Step[] {
  if (was.length * is.length > maxCells) return [...stepsOf("was", was), ...stepsOf("is", is)];
  const width = is.length + 1;
  // The length of the longest common subsequence from each pair of positions on.
  const common = new Uint16Array((was.length + 1) * width);
  const commonAt = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = was.length - 1; i >= 0; i--) {
    for (let j = is.length - 1; j >= 0; j--) {
      common[i * width + j] =
        was[i] === is[j] ? commonAt(i + 1, j + 1) + 1 : Math.max(commonAt(i + 1, j), commonAt(i, j + 1));
    }
  }
  const steps: Step[] = [];
  let [i, j] = [0, 0];
  while (i < was.length && j < is.length) {
    const [old = "", now = ""] = [was[i], is[j]];
    if (old === now) steps.push({ kind: "same", text: old });
    else if (commonAt(i + 1, j) >= commonAt(i, j + 1)) steps.push({ kind: "was", text: old });
    else steps.push({ kind: "is", text: now });
    const { kind } = steps.at(-1) ?? {};
    if (kind !== "is") i += 1;
    if (kind !== "was") j += 1;
  }
  return [...steps, ...stepsOf("was", was.slice(i)), ...stepsOf("is", is.slice(j))];
}

function stepsOf(kind: Step["kind"], texts: readonly string[]): Step[] {
  return texts.map((text) => ({ kind, text }));
}
