// Finds out what runs at an address: a Headrace server, with its version and keys, or something else.

export type ServerAnswer =
  | {
      kind: "headrace";
      version: string | undefined;
      /** The server's published signing keys, as text to compare. */
      keys: string | undefined;
    }
  | { kind: "other"; status: number }
  | { kind: "silent"; reason: string };

const maxTextLength = 4 * 2 ** 20;

/** Time limit for an answer. A running server answers immediately. */
const answerMs = 3_000;

/** Returns the kind of server at the address. Rejects only with the reason of `given`. */
export async function askedServer(url: string, given: AbortSignal): Promise<ServerAnswer> {
  const signal = AbortSignal.any([given, AbortSignal.timeout(answerMs)]);
  try {
    const health = await fetchJson(`${url}/healthz`, signal);
    if (health.status !== 200 || fieldOf(health.json, "status") !== "ok")
      return { kind: "other", status: health.status };
    const [description, jwks] = await Promise.all([
      fetchJson(`${url}/openapi.json`, signal),
      fetchJson(`${url}/.well-known/jwks.json`, signal),
    ]);
    const info = fieldOf(description.json, "info");
    if (fieldOf(info, "title") !== "Headrace") return { kind: "other", status: health.status };
    const version = fieldOf(info, "version");
    return {
      kind: "headrace",
      version: typeof version === "string" ? version : undefined,
      keys: jwks.status === 200 ? JSON.stringify(jwks.json) : undefined,
    };
  } catch (error) {
    given.throwIfAborted();
    if (signal.aborted) return { kind: "silent", reason: `no answer within ${answerMs / 1000} s` };
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return { kind: "silent", reason: code || (error instanceof Error ? error.message : String(error)) };
  }
}

/** Fetches JSON without a credential. Does not follow redirects. Rejects like `fetch`. */
export async function fetchJson(
  url: string,
  signal: AbortSignal,
  proxy?: string,
): Promise<{ status: number; json: unknown }> {
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    redirect: "manual",
    signal,
    ...(proxy === undefined ? {} : { proxy }),
  });
  const text = await response.text();
  return { status: response.status, json: text.length > maxTextLength ? undefined : parsed(text) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
