// Sleep and wake of vLLM: at level 1 the weights go to RAM and back, and what is kept of prompts is dropped.
import { exactMs } from "../../base/clock.ts";

const askTimeoutMs = 120_000;
const pollMs = 100;

/** Gives whether the server sleeps now. It has to be started with VLLM_SERVER_DEV_MODE=1 and `--enable-sleep-mode`. */
export function fallAsleep(url: string): Promise<boolean> {
  return ask(url, "/sleep?level=1", true);
}

/** Gives whether the server is awake now. */
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
    // It does not answer: then it is of no use, asleep or awake.
  }
  return false;
}
