// Lua files are imported as text, with `{ type: "text" }`.
declare module "*.lua" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: the runtime gives it under no other name.
  export default text;
}
