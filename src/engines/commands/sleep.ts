// vLLM's sleep mode. At level 1 the weights move from GPU memory to RAM, and the prompt cache is dropped.
import { exactMs } from "../../base/clock.ts";

const askTimeoutMs = 120_000;
const pollMs = 100;

/**
 * Puts a vLLM server to sleep, and returns whether it is asleep now. Needs VLLM_SERVER_DEV_MODE=1 and
 * `--enable-sleep-mode`.
 */
export function fallAsleep(url: string): Promise<boolean> {
  return ask(url, "/sleep?level=1", true);
}

/** Wakes a server, and returns whether it is awake now. */
export function wakeUp(url: string): Promise<boolean> {
  return ask(url, "/wake_up", false);
}

async function ask(url: string, path: string, wanted: boolean): Promise<boolean> {
  const untilMs = exactMs() + askTimeoutMs;
  const signal = AbortSignal.timeout(askTimeoutMs);
  try {
    const response = await fetch(`${url}${path}`, { method: "POST", signal });
    if (!response.ok) return false;
    while (exactMs() < untilMs) {
      const state = await fetch(`${url}/is_sleeping`, { signal });
      const said: unknown = await state.json();
      if (typeof said === "object" && said !== null && "is_sleeping" in said && said.is_sleeping === wanted)
        return true;
      await Bun.sleep(pollMs);
    }
  } catch {
    // A server that does not answer is of no use, asleep or awake, so the result is false.
  }
  return false;
}
