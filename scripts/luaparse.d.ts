// The part of luaparse that scripts/house/lua.ts uses: it comes without types.
declare module "luaparse" {
  export interface Chunk {
    /** The first mention of each name that is declared nowhere. */
    globals: { name: string; loc: { start: { line: number } } }[];
  }

  /** Throws a SyntaxError whose message begins with the line and column, `[3:14]`. */
  export function parse(text: string, options: { luaVersion: "5.1"; scope: true; locations: true }): Chunk;
}
