// What the house does not keep to yet, and by how much: each line may only go down, or away.

/** Folders with more than their files, and with how many. */
export const crowded: Readonly<Record<string, number>> = {};

/** Files that read the time themselves. */
export const readTime: readonly string[] = [];

/** Tests that reach into the inside of what they test. */
export const insideTests: readonly string[] = [];

/** Cycles of imports, types included. */
export const cycles = 0;

/** Comments and names of tests that begin as the second half of a sentence, by room. */
export const headless: Readonly<Record<string, number>> = {};

/** Bounds and endings of docs/reference/long-lived.md that no test tries by name yet. */
export const untriedLongLived: readonly string[] = [];
