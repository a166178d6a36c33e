// The Lua that runs in Redis: each script, as it is put together, is read whole, and names nothing that is declared nowhere.
import { parse } from "luaparse";
import { lineAt } from "./imports.ts";

export interface LuaFile {
  /** From the root of the repository, with slashes. */
  path: string;
  text: string;
}

/** What Redis gives to a script, as far as ours use it. A global of its own a script may not have: Redis refuses it as it runs. */
const given = new Set("ARGV KEYS cmsgpack ipairs math redis string tonumber unpack".split(" "));

/** One line for each fault in one of `scripts`, which are files put together, and for each file that is in none of them. */
export function checkLua(files: readonly LuaFile[], scripts: readonly string[]): string[] {
  const unused = files
    .filter(({ text }) => text.trim() === "" || !scripts.some((script) => script.includes(text)))
    .map(({ path }) => `${path}: is in no script of src/limits/shared/limit-scripts.ts.`);
  return [...unused, ...new Set(scripts.flatMap((script) => faultsOf(script, files)))];
}

function faultsOf(script: string, files: readonly LuaFile[]): string[] {
  try {
    return parse(script, { luaVersion: "5.1", scope: true, locations: true })
      .globals.filter(({ name }) => !given.has(name))
      .map(({ name, loc }) => `${placeOf(loc.start.line, script, files)}: ${name} is declared nowhere in front of it.`);
  } catch (error) {
    const [, line, reason] = /^\[(\d+):\d+\] (.*)/s.exec((error as Error).message) ?? [];
    if (line === undefined) throw error;
    return [`${placeOf(Number(line), script, files)}: ${reason}`];
  }
}

/** In which file a line of a script stands, and where in it: the last that begins there or before. */
function placeOf(line: number, script: string, files: readonly LuaFile[]): string {
  const [last] = files
    .map(({ path, text }) => ({ path, first: script.includes(text) ? lineAt(script, script.indexOf(text)) : Infinity }))
    .filter(({ first }) => first <= line)
    .sort((a, b) => b.first - a.first);
  return last ? `${last.path}:${line - last.first + 1}` : `line ${line}`;
}
