// Compares two texts: the lines removed and added, with some lines around them.

export interface LineChange {
  sign: " " | "-" | "+";
  line: string;
}

/** The number of unchanged lines to show before and after a change. */
const around = 2;
/** Maximum lines that are compared one by one. If the changed part of a text is longer, it is shown as replaced. */
const maxLines = 3_000;

/** Returns the changed lines and some lines around them; empty if the texts are equal. */
export function lineChanges(before: string, after: string): LineChange[] {
  const all = compared(linesOf(before), linesOf(after));
  const isNear = (index: number) =>
    all.slice(Math.max(0, index - around), index + around + 1).some(({ sign }) => sign !== " ");
  return all.filter((_, index) => isNear(index));
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function compared(before: readonly string[], after: readonly string[]): LineChange[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end++;
  const same = (line: string): LineChange => ({ sign: " ", line });
  return [
    ...before.slice(0, start).map(same),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

/** Compares two lists of lines by their longest common subsequence. */
function middle(before: readonly string[], after: readonly string[]): LineChange[] {
  const gone = (line: string): LineChange => ({ sign: "-", line });
  const come = (line: string): LineChange => ({ sign: "+", line });
  if (before.length * after.length > maxLines * maxLines) return [...before.map(gone), ...after.map(come)];
  const width = after.length + 1;
  const length = new Uint16Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const at = i * width + j;
      length[at] =
        before[i] === after[j]
          ? (length[at + width + 1] ?? 0) + 1
          : Math.max(length[at + width] ?? 0, length[at + 1] ?? 0);
    }
  }
  const changes: LineChange[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [left, right] = [before[i], after[j]];
    if (left !== undefined && left === right) {
      changes.push({ sign: " ", line: left });
      i++;
      j++;
    } else if (
      left !== undefined &&
      (right === undefined || (length[(i + 1) * width + j] ?? 0) >= (length[i * width + j + 1] ?? 0))
    ) {
      changes.push(gone(left));
      i++;
    } else {
      changes.push(come(right ?? ""));
      j++;
    }
  }
  return changes;
}
