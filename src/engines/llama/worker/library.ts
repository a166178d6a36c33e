// The only place that loads node-llama-cpp, so that a GPU build installed elsewhere can replace the default.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export type Library = typeof import("node-llama-cpp");

/**
 * Loads the library. `directory` is that of another install of the package, e.g. one with the CUDA back-end; the default
 * is our own dependency. Both have the same version, so the types hold for both. Values such as LlamaText must come
 * from the module loaded here: two installs do not recognise each other's classes.
 */
export async function loadLibrary(directory?: string): Promise<Library> {
  if (directory === undefined) return await import("node-llama-cpp");
  return await import(pathToFileURL(join(directory, "dist", "index.js")).href);
}
