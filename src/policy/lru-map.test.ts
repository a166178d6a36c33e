// Tests a map of bounded size: it drops the least recently used entry, after any operations.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { LruMap } from "./lru-map.ts";

/** The same map as a simple list, least recently used entry first. */
class ListModel {
  readonly #capacity: number;
  #entries: [string, number][] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.length;
  }

  get oldest(): { key: string; value: number } | undefined {
    const [first] = this.#entries;
    return first && { key: first[0], value: first[1] };
  }

  get(key: string): number | undefined {
    const entry = this.#entries.find(([known]) => known === key);
    if (!entry) return undefined;
    this.#entries = [...this.#entries.filter((one) => one !== entry), entry];
    return entry[1];
  }

  set(key: string, value: number): void {
    this.delete(key);
    if (this.#entries.length >= this.#capacity) this.#entries.shift();
    this.#entries.push([key, value]);
  }

  delete(key: string): void {
    this.#entries = this.#entries.filter(([known]) => known !== key);
  }

  clear(): void {
    this.#entries = [];
  }
}

test.each([1, 2, 3, 10, 200])("agrees with a plain list after each of 5,000 steps with capacity %d", (capacity) => {
  let seed = capacity;
  const below = (count: number) => {
    seed = (seed * 48271) % 2147483647;
    return seed % count;
  };
  const map = new LruMap<number>(capacity);
  const model = new ListModel(capacity);
  for (let step = 0; step < 5_000; step++) {
    const key = `k${below(2 * capacity + 1)}`;
    const action = below(100);
    if (action < 50) {
      expect([step, map.get(key)]).toEqual([step, model.get(key)]);
    } else if (action < 89) {
      map.set(key, step);
      model.set(key, step);
    } else if (action < 99) {
      map.delete(key);
      model.delete(key);
    } else {
      map.clear();
      model.clear();
    }
    expect([step, map.size, map.oldest]).toEqual([step, model.size, model.oldest]);
  }
});

test("frees the memory of entries that were evicted, deleted or cleared", () => {
  // This runs in a separate process, because the memory that other tests leave behind would count in this one.
  const script = `
    const { LruMap } = require(${JSON.stringify(join(import.meta.dir, "lru-map.ts"))});
    const map = new LruMap(1_000);
    // Where nothing is under way: what a stack still points to is not collected, nor what that leads to.
    const heap = async () => {
      await new Promise(setImmediate);
      Bun.gc(true);
      return process.memoryUsage().heapUsed;
    };
    const grown = [];
    const comeAndGo = (count) => {
      for (let n = 0; n < count; n++) {
        map.set("set " + n, n);
        map.set("set and deleted " + n, n);
        map.delete("set and deleted " + n);
      }
      return heap();
    };
    const before = await comeAndGo(10_000);
    grown.push((await comeAndGo(500_000)) - before);
    const largeKey = (n) => "x".repeat(5_000) + n;
    const fill = () => {
      for (let n = 0; n < 1_000; n++) map.set(largeKey(n), new Array(1_000).fill(n));
    };
    fill();
    for (let n = 0; n < 1_000; n++) map.delete(largeKey(n));
    grown.push((await heap()) - before);
    fill();
    map.clear();
    grown.push((await heap()) - before);
    for (let n = 0; n < 300_000; n++) {
      map.set("cleared " + n, n);
      if (n % 100 === 0) map.clear();
    }
    grown.push((await heap()) - before);
    console.log(JSON.stringify(grown));
  `;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script], { stderr: "inherit" });
  const grown: number[] = JSON.parse(String(stdout));
  expect(grown).toHaveLength(4);
  for (const bytes of grown) expect(bytes).toBeLessThan(2_000_000);
});
