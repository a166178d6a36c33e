// The Hugging Face hub: lists the files of a repository, and explains why a file cannot be downloaded.
import { z } from "zod";
import { type Hub, type HubResponse, hubGet } from "./hub-request.ts";
import type { HubFile, ModelSource } from "./model-source.ts";
import { SetupError } from "./setup-error.ts";

// Hub API, "list repository tree": https://huggingface.co/docs/hub/api
const treeEntries = z.array(
  z.object({
    type: z.string(),
    path: z.string().min(1),
    size: z.number().int().nonnegative().optional(),
    oid: z.string().optional(),
    lfs: z.object({ oid: z.string().regex(/^[0-9a-f]{64}$/), size: z.number().int().nonnegative() }).optional(),
  }),
);

// These limits are far above any model repository. They bound the memory if the address is not a hub.
const maxListingBytes = 32 * 1024 * 1024;
const maxListingPages = 50;

/** Lists all files of the repository's main branch. Rejects with a SetupError, or with the reason of `signal`. */
export async function listHubFiles(hub: Hub, source: ModelSource, signal: AbortSignal): Promise<HubFile[]> {
  const files: HubFile[] = [];
  let address: string | undefined =
    `${hub.endpoint}/api/models/${source.owner}/${source.repo}/tree/main?recursive=true`;
  for (let page = 0; address !== undefined && page < maxListingPages; page++) {
    const response: HubResponse = await hubGet(hub, address, { accept: "application/json" }, signal);
    if (response.status !== 200) {
      response.discard();
      throw hubFailure(response, source, hub);
    }
    files.push(...parseTree(await readText(response), response.host));
    address = nextPage(response, hub);
  }
  return files;
}

/** Returns the address of a file's content. The hub answers with a redirect to its storage. */
export function hubFileAddress(hub: Hub, source: ModelSource, path: string): string {
  const escaped = path.split("/").map(encodeURIComponent).join("/");
  return `${hub.endpoint}/${source.owner}/${source.repo}/resolve/main/${escaped}`;
}

/** Returns the error for a failed response. The hub's `X-Error-Code` tells a gated repository from a missing one. */
export function hubFailure(
  response: Pick<HubResponse, "status" | "headers" | "host">,
  source: ModelSource,
  hub: Hub,
): SetupError {
  const { status, host } = response;
  const name = `${source.owner}/${source.repo}`;
  const code = response.headers.get("x-error-code");
  const login = `${hub.endpoint}/settings/tokens`;
  if (code === "GatedRepo" || (status === 403 && host === new URL(hub.endpoint).host)) {
    const then = hub.token === undefined ? `create a token at ${login} and set HF_TOKEN to it` : "try again";
    const why = hub.token === undefined ? "is gated" : "is gated and the account of HF_TOKEN has no access to it";
    return new SetupError(`${name} ${why}. Ask for access at ${hub.endpoint}/${name}, then ${then}.`);
  }
  if (status === 401 && hub.token !== undefined) {
    return new SetupError(
      `The hub refused HF_TOKEN, or ${name} does not exist. Check the name, or create a token at ${login}.`,
    );
  }
  if (status === 401 || code === "RepoNotFound") {
    return new SetupError(
      `The hub knows no public repository ${name}. Check the spelling; if it is private or gated, set HF_TOKEN (tokens: ${login}).`,
    );
  }
  if (status === 404) return new SetupError(`The hub has no such repository or file in ${name}. Check the spelling.`);
  if (status === 429 || status === 408 || status >= 500) {
    return new SetupError(`${host} is busy or failing (HTTP ${status}).`, {
      kind: "busy",
      retryAfterMs: retryAfterMs(response.headers),
    });
  }
  return new SetupError(`${host} answered HTTP ${status}, which is neither the file nor a known error.`);
}

function parseTree(text: string, host: string): HubFile[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new SetupError(`${host} answered with something that is no JSON. Is HF_ENDPOINT, or a proxy, in the way?`);
  }
  const tree = treeEntries.safeParse(json);
  if (!tree.success) throw new SetupError(`${host} lists the repository in an unknown form.`, { cause: tree.error });
  return tree.data.flatMap(({ type, path, size, oid, lfs }): HubFile[] => {
    if (type !== "file") return [];
    if (lfs !== undefined) return [{ path, bytes: lfs.size, checksum: { algorithm: "sha256", hex: lfs.oid } }];
    if (size === undefined || oid === undefined) return [];
    return [{ path, bytes: size, checksum: { algorithm: "git-blob", hex: oid } }];
  });
}

async function readText(response: HubResponse): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.chunks()) {
    bytes += chunk.length;
    if (bytes > maxListingBytes) throw new SetupError(`${response.host} lists more files than a repository can have.`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * Returns the address of the next page of a listing, from the `Link` header (RFC 8288). Undefined on the last
 * page, or if the address is outside the hub.
 */
function nextPage(response: HubResponse, hub: Hub): string | undefined {
  const target = /<([^<>]+)>\s*;\s*rel="?next"?/.exec(response.headers.get("link") ?? "")?.[1];
  if (target === undefined || !URL.canParse(target, hub.endpoint)) return undefined;
  const url = new URL(target, hub.endpoint);
  return url.origin === new URL(hub.endpoint).origin ? url.href : undefined;
}

/**
 * Returns the delay of a Retry-After header in seconds (RFC 9110 section 10.2.3). Limited to 60 s, because a
 * user waits at a terminal.
 */
function retryAfterMs(headers: Headers): number | undefined {
  const value = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(value) && value >= 0 ? Math.min(value, 60) * 1000 : undefined;
}
