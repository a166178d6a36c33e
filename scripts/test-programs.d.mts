// The types of what tests use of test-programs.mjs.

/** The folder with the `node_modules` of the agents, whether or not they are installed. */
export const programsFolder: string;
/** The virtual environment of Python's SDKs, whether or not it is there. */
export const pythonFolder: string;

/** The folder with the `node_modules` of npm's versions, whether or not they are installed. */
export const npmsFolder: string;
/** A cache of npm with the packages that a clone runs on, whether or not it is there. */
export const clonePackages: string;

/** The tools that read deploy/, whether or not they are there: each where its executable is, and the types that others publish. */
export const deployTools: Readonly<Record<"python" | "hadolint" | "helm" | "kubectl" | "compose" | "types", string>>;

/** A tar archive of a Debian with its essential packages, libstdc++ and passwd. */
export const smallDebian: string;
/** The same of a newer one, with its own Node.js. */
export const debianWithNode: string;
/** The same with its own npm. */
export const debianWithNpm: string;
/** Makes those archives where they are not there yet; ends the process, saying why, where that fails. */
export function ensureSmallDebians(): void;
