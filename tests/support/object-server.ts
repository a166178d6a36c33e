// An object store that speaks as much of S3's API as files need: objects whole and in parts, ranges, deletion; it checks no signature.

export interface ObjectServer {
  url: string;
  objects: Map<string, Buffer>;
  /** Answers everything with 503 while it is true. */
  isAway: boolean;
  /** Answers requests of these methods, for objects whose name has one of these in it, with an error of S3, while it is there. */
  refusal: { methods: readonly string[]; status: number; code: string; names?: readonly string[] } | undefined;
  /** Answers everything with a page and 200 while it is true, as the proxy of a network that wants a sign-in does. */
  isPage: boolean;
  /** Answers ranges with the whole object while it is true. */
  ignoresRanges: boolean;
  [Symbol.asyncDispose](): Promise<void>;
}

export function startObjectServer(): ObjectServer {
  const objects = new Map<string, Buffer>();
  const uploads = new Map<string, Map<number, Buffer>>();
  const put = async (request: Request, name: string, query: URLSearchParams): Promise<Response> => {
    const bytes = Buffer.from(await request.arrayBuffer());
    const upload = query.get("uploadId");
    if (upload === null) objects.set(name, bytes);
    else uploads.get(upload)?.set(Number(query.get("partNumber")), bytes);
    return new Response("", { headers: { etag: `"${Bun.hash(bytes)}"` } });
  };
  const post = (name: string, query: URLSearchParams): Response => {
    if (query.has("uploads")) {
      const id = Bun.randomUUIDv7();
      uploads.set(id, new Map());
      return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
    }
    const parts = [...(uploads.get(query.get("uploadId") ?? "") ?? [])].sort(([a], [b]) => a - b);
    objects.set(name, Buffer.concat(parts.map(([, bytes]) => bytes)));
    return xml(`<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>`);
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      const name = decodeURIComponent(pathname.slice(1));
      if (store.isAway) return new Response("", { status: 503 });
      const { refusal } = store;
      if (refusal?.methods.includes(request.method) && (refusal.names ?? [""]).some((one) => name.includes(one))) {
        return xml(`<Error><Code>${refusal.code}</Code><Message>no</Message></Error>`, refusal.status);
      }
      if (store.isPage) return new Response("<html>Sign in</html>", { headers: { "content-type": "text/html" } });
      if (request.method === "PUT") return put(request, name, searchParams);
      if (request.method === "POST") return post(name, searchParams);
      if (request.method === "DELETE") {
        if (searchParams.has("uploadId")) uploads.delete(searchParams.get("uploadId") ?? "");
        else objects.delete(name);
        return new Response(null, { status: 204 });
      }
      if (request.method === "HEAD") return head(objects.get(name));
      return get(request, objects.get(name), store.ignoresRanges);
    },
  });
  const store: ObjectServer = {
    url: `http://127.0.0.1:${server.port}`,
    objects,
    isAway: false,
    refusal: undefined,
    isPage: false,
    ignoresRanges: false,
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };
  return store;
}

function head(bytes: Buffer | undefined): Response {
  if (!bytes) return new Response(null, { status: 404 });
  return new Response(null, { headers: { "content-length": String(bytes.length), etag: `"${Bun.hash(bytes)}"` } });
}

function get(request: Request, bytes: Buffer | undefined, ignoresRanges: boolean): Response {
  if (!bytes) {
    return xml("<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>", 404);
  }
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("range") ?? "");
  const body = new Uint8Array(bytes);
  if (!range || ignoresRanges) return new Response(body);
  const [start, end] = [Number(range[1]), range[2] === "" ? bytes.length : Number(range[2]) + 1];
  return new Response(body.subarray(start, end), { status: 206 });
}

function xml(text: string, status = 200): Response {
  return new Response(`<?xml version="1.0" encoding="UTF-8"?>${text}`, {
    status,
    headers: { "content-type": "application/xml" },
  });
}
