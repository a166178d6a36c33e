// A load balancer without stickiness: each request goes to the next server, whoever sends it.

export interface LoadBalancer {
  /** What clients and browsers use. */
  url: string;
  /** Base URLs, asked in turn; may be replaced while it runs. */
  servers: string[];
  /** How many requests each server got. */
  counts: Map<string, number>;
  /** The next request goes to this one of `servers`. */
  next: number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Before its servers, whose public URL it is. */
export function startLoadBalancer(): LoadBalancer {
  const balancer = { servers: [] as string[], counts: new Map<string, number>(), next: 0 };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const target = balancer.servers[balancer.next % balancer.servers.length];
      if (target === undefined) return new Response("no server", { status: 502 });
      balancer.next = (balancer.next + 1) % balancer.servers.length;
      balancer.counts.set(target, (balancer.counts.get(target) ?? 0) + 1);
      const headers = new Headers(request.headers);
      headers.set("x-forwarded-for", "203.0.113.9");
      try {
        return await fetch(`${target}${pathname}${search}`, {
          method: request.method,
          headers,
          redirect: "manual",
          decompress: false,
          signal: request.signal,
          ...(request.body ? { body: await request.arrayBuffer() } : {}),
        });
      } catch {
        return new Response("the server is gone", { status: 502 });
      }
    },
  });
  return Object.assign(balancer, {
    url: `http://localhost:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  });
}
