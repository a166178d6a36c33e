// Runs in a child process: loads an install of node-llama-cpp with one back-end, and prints the devices that it
// finds as JSON.
import { loadLibrary } from "./worker/library.ts";

/** The JSON line on standard output: the devices found (none for the CPU), or why the library does not start. */
export type ProbeAnswer = { devices: string[] } | { error: string };

async function probe(libraryPath: string, gpu: "cuda" | "vulkan" | false): Promise<ProbeAnswer> {
  const library = await loadLibrary(libraryPath);
  const llama = await library.getLlama({
    gpu,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: library.LlamaLogLevel.disabled,
  });
  const devices = llama.gpu === false ? [] : await llama.getGpuDeviceNames();
  await llama.dispose();
  return { devices };
}

/** Runs the probe. The arguments are `<directory of the library> <back-end>`. */
export async function probeEngine([libraryPath = "", wanted]: readonly string[]): Promise<void> {
  const gpu = wanted === "cuda" || wanted === "vulkan" ? wanted : false;
  const answer = await probe(libraryPath, gpu).catch(
    (error: unknown): ProbeAnswer => ({ error: error instanceof Error ? error.message : String(error) }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0));
}
