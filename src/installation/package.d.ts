// The package inside the single-file executable; created by `scripts/release/executables.ts`.
declare module "*.tar.zst" {
  const path: string;
  // biome-ignore lint/style/noDefaultExport: Bun gives the path of a file in that way.
  export default path;
}
