// The types of bun-environment.mjs.

/** The environment of this process with what Bun must start with, and `extra`. */
export function bunEnvironment(extra?: Readonly<Record<string, string>>): Record<string, string>;
