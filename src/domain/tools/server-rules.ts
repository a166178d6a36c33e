// The rules for the settings of an MCP server. headrace.yaml and the API share them.
import { parseHttpUrl } from "../../base/text/http-url.ts";
import { mcpServerName } from "./mcp-server.ts";

export interface TextRule {
  readonly pattern: RegExp;
  /** The requirement. Continues the words "must be". */
  readonly must: string;
  /** The remedy, as a full sentence. */
  readonly fix: string;
}

const printable = /^[!-~]+$/;

/** The rules for texts in a server's settings. The maximum length is given where a rule is used. */
export const mcpServerTexts = {
  name: {
    pattern: mcpServerName,
    must: "1 to 24 lower-case letters, digits and hyphens, beginning and ending with a letter or digit",
    fix: "Give a name such as github.",
  },
  headerName: {
    pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
    must: "the name of a header, of 1 to 128 characters",
    fix: "Give a name such as authorization.",
  },
  header: {
    pattern: /^[ -~]+$/,
    must: "1 to 8192 printable ASCII characters",
    fix: "Write a text such as Bearer and the token.",
  },
  clientId: {
    pattern: printable,
    must: "printable characters, 2048 at most",
    fix: "Give the client id, or leave it out.",
  },
  clientSecret: {
    pattern: printable,
    must: "printable characters, 2048 at most",
    fix: "Give the secret beside client_id, or leave it out.",
  },
  scope: {
    pattern: printable,
    must: "1 to 200 printable characters without a space",
    fix: "Write each scope as an entry of its own.",
  },
  account: {
    pattern: /^acct_[\w-]+$/,
    must: "an id such as acct_…",
    fix: "Give the id that headrace accounts lists.",
  },
  tool: {
    pattern: printable,
    must: "1 to 256 printable ASCII characters without spaces",
    fix: "Give a name such as search_issues, or a beginning such as search_*.",
  },
} as const satisfies Record<string, TextRule>;

/**
 * Headers that the gateway sets itself. If settings could set connection or length headers, they could split requests.
 */
const ownHeaders: ReadonlySet<string> = new Set([
  ...["connection", "content-length", "expect", "host", "keep-alive"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
]);

/** The settings under the names of headrace.yaml and the API. */
interface Given {
  readonly url?: string | undefined;
  readonly headers?: object | null | undefined;
  readonly oauth?: { readonly client_id?: unknown; readonly client_secret?: unknown } | null | undefined;
}

/** Returns the first contradiction in a server's credentials, or undefined. `at` is the name of the faulty setting. */
export function toolCredentialsFault({
  url,
  headers,
  oauth,
}: Given): { at: "headers" | "oauth"; message: string; fix: string } | undefined {
  if (headers && oauth)
    return { at: "oauth", message: "cannot be set together with headers", fix: "Keep one of them." };
  if (oauth?.client_secret != null && oauth.client_id == null) {
    return { at: "oauth", message: "has a client_secret without its client_id", fix: "Give client_id as well." };
  }
  const own = Object.keys(headers ?? {}).find((name) => ownHeaders.has(name.toLowerCase()));
  if (own !== undefined)
    return { at: "headers", message: `has ${own}, which is the gateway's own`, fix: "Leave it out." };
  if (url !== undefined || !(headers || oauth)) return undefined;
  return { at: headers ? "headers" : "oauth", message: "is for servers with a url", fix: "Leave it out." };
}

export const toolIssuerRule = {
  must: "a URL that begins with https:// and has no user, password, query or fragment",
  fix: "Give the issuer as its own metadata has it, such as https://login.example.com.",
} as const;

/** Reports whether the text is an https URL, or an http URL on this machine. */
export function isToolIssuer(text: string): boolean {
  const url = parseHttpUrl(text);
  return url !== undefined && (url.protocol === "https:" || /^(?:127\.0\.0\.1|\[::1\]|localhost)$/.test(url.hostname));
}

/**
 * Returns the context under which a server's credentials are sealed. It contains the URL's origin. If somebody changes
 * the origin in the stored row, the credentials cannot be opened, so they are never sent to another server.
 */
export function mcpServerContext({ name, url }: { name: string; url: string }): string {
  return `tool server ${name} ${new URL(url).origin}`;
}
