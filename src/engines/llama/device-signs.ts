// Checks by the driver's files whether this machine has a device for a GPU back-end, before anything is downloaded.
import { access, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Backend } from "./engine-backends.ts";

/** The paths that show a device for each GPU back-end. A `*` at the end stands for any rest of the name. */
const signs: Readonly<Record<string, Readonly<Record<Exclude<Backend, "cpu">, readonly string[]>>>> = {
  linux: {
    // The Windows Subsystem for Linux has `/dev/dxg`.
    cuda: ["/dev/nvidiactl", "/dev/dxg"],
    vulkan: ["/dev/dri/renderD*", "/dev/nvidiactl", "/dev/dxg"],
  },
  win32: {
    cuda: ["/Windows/System32/nvcuda.dll"],
    vulkan: ["/Windows/System32/vulkan-1.dll"],
  },
};

export interface DeviceSigns {
  /** The path that was found, or undefined. */
  seen: string | undefined;
  /** The paths that were checked. Empty if no path shows a device, as for the CPU. */
  searched: readonly string[];
}

/** Checks whether a path of the back-end exists. `root` is the root directory of the file system. */
export async function deviceSigns(
  backend: Backend,
  platform: string = process.platform,
  root = "/",
): Promise<DeviceSigns> {
  const searched = backend === "cpu" ? [] : (signs[platform]?.[backend] ?? []);
  for (const path of searched) {
    if (await isThere(join(root, path))) return { seen: path, searched };
  }
  return { seen: undefined, searched };
}

async function isThere(path: string): Promise<boolean> {
  if (!path.endsWith("*")) {
    return await access(path).then(
      () => true,
      () => false,
    );
  }
  const start = basename(path).slice(0, -1);
  const names: string[] = await readdir(dirname(path)).catch(() => []);
  return names.some((name) => name.startsWith(start));
}
