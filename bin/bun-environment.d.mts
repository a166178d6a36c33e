// The types of bun-environment.mjs.

/** The environment of this process with what Bun must start with, and `extra`. */
export function bunEnvironment(extra?: Readonly<Record<string, string>>): Record<string, string>;

/** How soon memory is given back. */
export declare const memorySettings: Readonly<Record<string, string>>;

/** All that the program is started with wherever no launcher is. */
export declare const bunSettings: Readonly<Record<string, string>>;
