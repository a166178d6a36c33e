// The types of what is used of bun.mjs.

/** The path of the Bun executable that npm installed; ends the process where there is none. */
export function bunExecutable(): string;
