// What the browser itself tells of how quick a page is: tasks that hold it up, content that moves, requests, bytes.
import type { Page } from "playwright-core";
import { until } from "./headrace.ts";

export interface PageSpeed {
  /** Total blocking time: what each task took beyond 50 ms, together. */
  blockingMs: number;
  maxMs: number;
  /** Cumulative layout shift. */
  shift: number;
  /** What moved, and how far. */
  moved: string[];
  requests: number;
  /** On the wire, bodies alone. */
  bytes: number;
}

interface PageTimings {
  tasks: number[];
  shift: number;
  moved: string[];
  /** `performance.now()` of the last of either. */
  lastMs: number;
}

/** The entry that the browser reports, which TypeScript does not know. */
interface LayoutShift extends PerformanceEntry {
  value: number;
  hadRecentInput: boolean;
  sources: { node: Node | null; previousRect: DOMRect; currentRect: DOMRect }[];
}

export interface WatchedPage {
  /** Once nothing has been loading or working for a while. */
  atRest(): Promise<PageSpeed>;
  requests(): number;
  speed(): Promise<PageSpeed>;
}

const restMs = 1_500;

/** Before the page is opened. */
export async function watchPage(page: Page): Promise<WatchedPage> {
  let requests = 0;
  let open = 0;
  let bytes = 0;
  let lastEndMs = performance.now();
  page.on("request", () => {
    requests += 1;
    open += 1;
  });
  const ended = () => {
    open -= 1;
    lastEndMs = performance.now();
  };
  page.on("requestfinished", (request) => {
    ended();
    request.sizes().then(
      (sizes) => {
        bytes += sizes.responseBodySize;
      },
      () => undefined,
    );
  });
  page.on("requestfailed", ended);
  await page.addInitScript(() => {
    const timings: PageTimings = { tasks: [], shift: 0, moved: [], lastMs: 0 };
    Object.assign(globalThis, { pageTimings: timings });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) timings.tasks.push(duration);
      timings.lastMs = performance.now();
    }).observe({ type: "longtask", buffered: true });
    new PerformanceObserver((list) => {
      const place = ({ x, y, width, height }: DOMRect) => [x, y, width, height].map(Math.round).join(" ");
      for (const { value, hadRecentInput, sources } of list.getEntries() as LayoutShift[]) {
        if (hadRecentInput) continue;
        timings.shift += value;
        for (const { node, previousRect, currentRect } of sources) {
          const what = `${node?.nodeName} ${node?.textContent?.slice(0, 60)}`;
          timings.moved.push(`${what}: from ${place(previousRect)} to ${place(currentRect)}`);
        }
      }
    }).observe({ type: "layout-shift", buffered: true });
  });
  const timings = () =>
    page.evaluate(() => {
      const all = (globalThis as unknown as { pageTimings: PageTimings }).pageTimings;
      return { ...all, idleMs: performance.now() - all.lastMs };
    });
  const speed = async (): Promise<PageSpeed> => {
    const { tasks, shift, moved } = await timings();
    const blockingMs = tasks.reduce((sum, ms) => sum + Math.max(0, ms - 50), 0);
    return { blockingMs, maxMs: Math.max(0, ...tasks), shift, moved, requests, bytes };
  };
  return {
    speed,
    requests: () => requests,
    async atRest() {
      await until(
        async () => open === 0 && performance.now() - lastEndMs > restMs && (await timings()).idleMs > restMs,
        "the page is at rest",
        60_000,
      );
      return speed();
    },
  };
}
