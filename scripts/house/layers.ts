// The layers: which room may import which, as one table of what is allowed. All else is refused.
import { dirname } from "node:path";
import { type Import, isTest, type SourceFile } from "./imports.ts";

export interface Room {
  /** Rooms, beside itself and what is within it, and files outside of all rooms. */
  may: readonly string[];
  /** Packages and modules of the runtime; a name allows what is under it, too. Tests may import others. */
  packages?: readonly string[];
  /** What is said to who goes beyond that. */
  because: string;
}

/**
 * Rooms by path: a folder with all that is in it, a folder with `/*` for the files directly in it, or a file. `<each>` stands
 * for any folder, and each such folder is apart: its files do not import those of another one. The longest name counts.
 */
export type Layers = Readonly<Record<string, Room>>;

const [direct, each] = ["/*", "<each>"];
const forTests = ["tests", "models"];

/** One line for each import that is not allowed, types included, and for each file that is in no room. */
export function checkLayers(files: readonly SourceFile[], layers: Layers): string[] {
  const names = Object.keys(layers).sort((a, b) => b.length - a.length);
  return files.flatMap((file) => {
    const name = roomOf(file.path, names);
    const room = name === undefined ? undefined : layers[name];
    if (name === undefined || room === undefined) {
      return `${file.path}: is in no room. Put it into one that there is, or give its folder a line in scripts/house/table.ts.`;
    }
    const packages = room.packages ?? [];
    const may = isTest(file) ? [...room.may, ...forTests] : room.may;
    const isAllowed = ({ path, specifier }: Import) => {
      if (path === undefined) return isTest(file) || packages.some((allowed) => isWithin(specifier, allowed));
      const other = roomOf(path, names);
      if (other === undefined) return may.some((allowed) => isWithin(path, allowed));
      const [from, to] = [eachOf(file.path, name), eachOf(path, other)];
      if (from !== undefined && to !== undefined && from !== to) return false;
      return other === name || isWithin(other, name) || may.includes(other);
    };
    return file.imports
      .filter((one) => !isAllowed(one))
      .map(({ path, specifier, line }) => {
        const allowed = path === undefined ? packages : may;
        const list = allowed.length === 0 ? "nothing" : allowed.join(", ");
        return `${file.path}:${line}: ${name} may not import ${specifier}: ${room.because} It may import: ${list}.`;
      });
  });
}

/** The room of a path, by names that are sorted by length, the longest first. */
function roomOf(path: string, names: readonly string[]): string | undefined {
  return names.find((name) => {
    const whole = name.replace(each, eachOf(path, name) ?? each);
    if (name.endsWith(direct)) return dirname(path) === whole.slice(0, -direct.length);
    // A file beside the folders is in none of them.
    if (name.endsWith(each)) return path.startsWith(`${whole}/`);
    return isWithin(path, whole);
  });
}

/** Returns the folder of a path that stands for `<each>` in the name of a room; undefined for other rooms. */
function eachOf(path: string, room: string): string | undefined {
  const before = room.indexOf(each);
  if (before < 0 || !path.startsWith(room.slice(0, before))) return undefined;
  return path.slice(before).split("/")[0];
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`) || (folder === "node:*" && path.startsWith("node:"));
}
