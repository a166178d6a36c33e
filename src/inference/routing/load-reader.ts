// Polls the load of model servers that this gateway uses, because other gateways or clients may use them too.
import type { Clock } from "../../base/clock.ts";
import type { Engine } from "../../domain/models/engine.ts";
import type { Router } from "./route.ts";

export interface LoadReaderOptions {
  engines(): readonly Engine[];
  router: Pick<Router, "said" | "lastUsedMs">;
  clock: Clock;
  /** Milliseconds between two polls. Default: 2,000. */
  everyMs?: number | undefined;
}

const everyMs = 2_000;
/** Milliseconds without a request after which a server is no longer polled. */
const usedWithinMs = 10_000;
const timeoutMs = 1_000;
/** Milliseconds for which a server is not polled after it could not report its load. */
const pauseMs = 30_000;

export class LoadReader {
  readonly #options: LoadReaderOptions;
  readonly #timer: ReturnType<typeof setInterval>;
  /** For each engine, the time in monotonic milliseconds until which it is not polled. */
  readonly #quietUntilMs = new WeakMap<Engine, number>();
  readonly #asked = new WeakSet<Engine>();

  constructor(options: LoadReaderOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.read(), options.everyMs ?? everyMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Polls the engines that were recently used. Never rejects. */
  async read(): Promise<void> {
    const { engines, router, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const wanted = engines().filter(
      (engine) =>
        engine.load !== undefined &&
        nowMs - router.lastUsedMs(engine) <= usedWithinMs &&
        nowMs >= (this.#quietUntilMs.get(engine) ?? Number.NEGATIVE_INFINITY) &&
        !this.#asked.has(engine),
    );
    await Promise.all(wanted.map((engine) => this.#ask(engine)));
  }

  async #ask(engine: Engine): Promise<void> {
    const { router, clock } = this.#options;
    this.#asked.add(engine);
    try {
      const load = await engine.load?.(AbortSignal.timeout(timeoutMs));
      if (load) router.said(engine, load);
      else this.#quietUntilMs.set(engine, Number.POSITIVE_INFINITY);
    } catch {
      this.#quietUntilMs.set(engine, clock.monotonicMs() + pauseMs);
    } finally {
      this.#asked.delete(engine);
    }
  }
}
