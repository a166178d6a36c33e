// Finds the route of a request by its path exactly as sent. Paths are never normalized, so that no two parts of the
// server interpret a path differently.
import type { Route } from "./route.ts";

export interface FoundRoute {
  route: Route;
  params: Readonly<Record<string, string>>;
}

/** Routes of one path, by method. */
type Methods = Map<string, FoundRoute>;

interface Pattern {
  /** Path segments. `:name` matches one non-empty segment, and `*` a non-empty rest. */
  segments: readonly string[];
  methods: Methods;
}

const noParams: Readonly<Record<string, string>> = {};

export class RouteTable {
  readonly #exact = new Map<string, Methods>();
  readonly #patterns: Pattern[] = [];
  /** Routes whose path ends in `*`, by the text before the `*`. */
  readonly #wildcards = new Map<string, Methods>();
  /**
   * Method and path of the last request for a fixed path. Most requests have the same path, so the route is often found
   * without a search.
   */
  #lastMethod = "";
  #lastPath = "";
  #lastFound: FoundRoute | undefined;

  constructor(routes: readonly Route[]) {
    this.add(routes);
  }

  /** Adds routes. A path must not match the pattern of an earlier route. */
  add(routes: readonly Route[]): void {
    for (const route of routes) {
      const methods = this.#methodsAt(route.path);
      const found = { route, params: noParams };
      methods.set(route.method, found);
      if (route.method === "GET") methods.set("HEAD", found);
    }
  }

  find(method: string, path: string): FoundRoute | undefined {
    if (this.#lastFound && path === this.#lastPath && method === this.#lastMethod) return this.#lastFound;
    const exact = this.#exact.get(path);
    if (exact) {
      const found = exact.get(method);
      if (!found) return undefined;
      this.#lastMethod = method;
      this.#lastPath = path;
      this.#lastFound = found;
      return found;
    }
    for (const { methods, params } of this.#matches(path)) {
      const found = methods.get(method);
      if (found) return { route: found.route, params };
    }
    return undefined;
  }

  /** Returns the methods that are allowed on a path. Empty if no route has this path. */
  allowed(path: string): string[] {
    const exact = this.#exact.get(path);
    if (exact) return [...exact.keys()];
    const found: string[] = [];
    for (const { methods } of this.#matches(path)) found.push(...methods.keys());
    return [...new Set(found)];
  }

  /** Reports whether the path leads to an HTML page, whatever the method. */
  isPage(path: string): boolean {
    const methods = [this.#exact.get(path), ...[...this.#matches(path)].map((match) => match.methods)];
    return methods.some((found) => found?.values().some(({ route }) => route.access === "page"));
  }

  *#matches(path: string): Generator<{ methods: Methods; params: Readonly<Record<string, string>> }> {
    const found = path.split("/");
    for (const { segments, methods } of this.#patterns) {
      const params = paramsOf(segments, found);
      if (params) yield { methods, params };
    }
    for (const [start, methods] of this.#wildcards) {
      if (path.length > start.length && path.startsWith(start))
        yield { methods, params: { "*": decoded(path.slice(start.length)) } };
    }
  }

  #methodsAt(path: string): Methods {
    if (path.endsWith("*")) return getOrMake(this.#wildcards, path.slice(0, -1));
    if (!path.includes("/:")) return getOrMake(this.#exact, path);
    const segments = path.split("/");
    let pattern = this.#patterns.find((known) => known.segments.join("/") === path);
    if (!pattern) {
      pattern = { segments, methods: new Map() };
      this.#patterns.push(pattern);
    }
    return pattern.methods;
  }
}

/** The prefix that groq's SDKs put before the paths of OpenAI's API. */
const groqPrefix = "/openai";

/**
 * Returns the path of a request target in origin or absolute form (RFC 9112, 3.2), without query. `/openai/v1/…`
 * becomes `/v1/…`.
 */
export function pathOf(target: string): string {
  let start = 0;
  if (target.startsWith("/openai/v1/")) {
    start = groqPrefix.length;
  } else if (!target.startsWith("/")) {
    // The host of the URL ends before the first slash, question mark or hash.
    const behind = /^https?:\/\/[^/?#]*/i.exec(target)?.[0].length;
    if (behind === undefined || target[behind] !== "/") return "/";
    start = behind;
  }
  for (let i = start; i < target.length; i++) {
    const code = target.charCodeAt(i);
    if (code === 0x3f || code === 0x23) return target.slice(start, i);
  }
  return start === 0 ? target : target.slice(start);
}

function paramsOf(wanted: readonly string[], found: readonly string[]): Record<string, string> | undefined {
  if (wanted.length !== found.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, segment] of wanted.entries()) {
    const value = found[i] ?? "";
    if (!segment.startsWith(":")) {
      if (segment !== value) return undefined;
    } else if (value === "") {
      return undefined;
    } else {
      params[segment.slice(1)] = decoded(value);
    }
  }
  return params;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function getOrMake(map: Map<string, Methods>, name: string): Methods {
  let methods = map.get(name);
  if (!methods) {
    methods = new Map();
    map.set(name, methods);
  }
  return methods;
}
