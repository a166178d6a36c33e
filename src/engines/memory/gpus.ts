// Finds this machine's GPUs and their used memory, with nvidia-smi or from the files of AMD's driver.
import { existsSync, readdirSync, readFileSync } from "node:fs";

export interface Gpu {
  /** The driver's index of the GPU. */
  index: number;
  /** The memory in bytes. */
  total: number;
  /** The unused memory in bytes. */
  free: number;
}

const askTimeoutMs = 10_000;
const drm = "/sys/class/drm";

/** Returns the NVIDIA GPUs, or else the AMD GPUs. Empty if neither driver is installed. */
export async function findGpus(): Promise<Gpu[]> {
  const listed = await nvidiaSmi("--query-gpu=index,memory.total,memory.free");
  return listed === undefined ? amdGpus() : parseGpus(listed);
}

/**
 * Returns the GPU memory that these processes use, by GPU index. Only NVIDIA's driver reports it. In a
 * container, the driver reports the host's process ids.
 */
export async function gpuBytesOf(pids: readonly number[]): Promise<Map<number, number>> {
  const gpus = await nvidiaSmi("--query-gpu=index,uuid");
  const apps = gpus === undefined ? undefined : await nvidiaSmi("--query-compute-apps=gpu_uuid,pid,used_gpu_memory");
  return gpus === undefined || apps === undefined ? new Map() : sumOfProcesses(gpus, apps, pids);
}

/** Parses lines of `index, total, free` in MiB. */
export function parseGpus(text: string): Gpu[] {
  return rowsOf(text).flatMap(([index, total, free]) => {
    const gpu = { index: Number(index), total: mebibytes(total), free: mebibytes(free) };
    return Number.isInteger(gpu.index) && gpu.total > 0 ? [gpu] : [];
  });
}

/**
 * Returns the bytes of the processes by GPU index. `gpus` has lines of `index, uuid`; `apps` has lines of `uuid,
 * pid, used` in MiB.
 */
export function sumOfProcesses(gpus: string, apps: string, pids: readonly number[]): Map<number, number> {
  const indexOf = new Map(rowsOf(gpus).map(([index, uuid]) => [uuid, Number(index)]));
  const sums = new Map<number, number>();
  for (const [uuid, pid, used] of rowsOf(apps)) {
    const index = indexOf.get(uuid);
    if (index === undefined || !pids.includes(Number(pid))) continue;
    sums.set(index, (sums.get(index) ?? 0) + mebibytes(used));
  }
  return sums;
}

function rowsOf(text: string): string[][] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => line.split(",").map((cell) => cell.trim()));
}

/** Converts a cell in MiB to bytes. A cell without a number, such as `[N/A]`, counts as zero. */
function mebibytes(cell: string | undefined): number {
  const amount = Number(cell);
  return Number.isFinite(amount) ? amount * 2 ** 20 : 0;
}

async function nvidiaSmi(query: string): Promise<string | undefined> {
  const program = Bun.which("nvidia-smi");
  if (program === null) return undefined;
  const child = Bun.spawn([program, query, "--format=csv,noheader,nounits"], {
    ...{ stdin: "ignore", stdout: "pipe", stderr: "ignore", timeout: askTimeoutMs },
  });
  const text = await new Response(child.stdout).text();
  return (await child.exited) === 0 ? text : undefined;
}

function amdGpus(): Gpu[] {
  if (!existsSync(drm)) return [];
  const cards = readdirSync(drm).filter((name) => /^card\d+$/.test(name));
  return cards
    .map((card) => ({ total: numberIn(card, "total"), used: numberIn(card, "used") }))
    .filter(({ total }) => total > 0)
    .map(({ total, used }, index) => ({ index, total, free: total - used }));
}

function numberIn(card: string, what: "total" | "used"): number {
  try {
    return Number(readFileSync(`${drm}/${card}/device/mem_info_vram_${what}`, "utf8"));
  } catch {
    return 0;
  }
}
