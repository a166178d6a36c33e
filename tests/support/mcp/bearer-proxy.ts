// Puts a bearer token on each request, for clients that cannot send one; all else goes through as it is, both ways, as it comes.

export interface BearerProxy {
  /** With the path of the target. */
  url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export function startBearerProxy(target: string, token: string): BearerProxy {
  const { origin, pathname } = new URL(target);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const headers = new Headers(request.headers);
      headers.set("authorization", `Bearer ${token}`);
      const { pathname: path, search } = new URL(request.url);
      const body = request.method === "POST" ? await request.arrayBuffer() : null;
      const init = { method: request.method, headers, body, signal: request.signal };
      const response = await fetch(origin + path + search, { ...init, redirect: "manual", decompress: false });
      return new Response(response.body, { status: response.status, headers: response.headers });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}${pathname}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
