// Cycles of imports, with those of types alone: who is in one cannot be read, tested or moved without the others.
import { isTest, type SourceFile } from "./imports.ts";

/** One line where there are more cycles than `most`, or fewer. */
export function checkCycles(files: readonly SourceFile[], most: number): string[] {
  const found = findCycles(files.filter((file) => !isTest(file)));
  if (found.length < most)
    return [`There are ${found.length} cycles of imports: the ${most} in scripts/house/owed.ts go down to that.`];
  if (found.length === most) return [];
  return found.map(
    (group) =>
      `A cycle of imports, with ${most} granted in all: ${group.join(", ")}. What both sides need goes into a file of its own.`,
  );
}

/** The files of each cycle, the smallest group that cannot be put in an order (Tarjan, 1972). */
function findCycles(files: readonly SourceFile[]): string[][] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const numbers = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const isOpen = new Set<string>();
  const cycles: string[][] = [];
  const visit = (path: string): number => {
    const number = numbers.size;
    numbers.set(path, number);
    lowest.set(path, number);
    open.push(path);
    isOpen.add(path);
    for (const { path: next } of byPath.get(path)?.imports ?? []) {
      if (next === undefined || !byPath.has(next)) continue;
      if (!numbers.has(next)) lower(path, visit(next));
      else if (isOpen.has(next)) lower(path, numbers.get(next) ?? 0);
    }
    if (lowest.get(path) === number) {
      const group = open.splice(open.indexOf(path));
      for (const member of group) isOpen.delete(member);
      if (group.length > 1) cycles.push(group.sort());
    }
    return lowest.get(path) ?? number;
  };
  const lower = (path: string, number: number) => lowest.set(path, Math.min(lowest.get(path) ?? number, number));
  for (const { path } of files) if (!numbers.has(path)) visit(path);
  return cycles;
}
