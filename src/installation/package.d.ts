// The package that an executable carries: made, and put in this place, by `scripts/release/executables.ts`.
declare module "*.tar.zst" {
  const path: string;
  // biome-ignore lint/style/noDefaultExport: Bun gives the path of a file in that way.
  export default path;
}
