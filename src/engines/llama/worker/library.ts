// The only place that loads node-llama-cpp, so that a GPU build installed elsewhere can replace the default.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export type Library = typeof import("node-llama-cpp");

/**
 * Loads node-llama-cpp from `directory`, such as an install of the same version with the CUDA back-end; the default is
 * our own dependency. Take classes such as LlamaText from the returned module, because two installs do not recognize
 * each other's classes.
 */
export async function loadLibrary(directory?: string): Promise<Library> {
  if (directory === undefined) return await import("node-llama-cpp");
  return await import(pathToFileURL(join(directory, "dist", "index.js")).href);
}
