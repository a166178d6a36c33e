// The text formats of configuration values: addresses, URLs, secrets, paths.
import { join, resolve } from "node:path";
import { parseHttpUrl } from "../base/text/http-url.ts";
import { homeDirectory } from "../installation/home.ts";

export type Env = Readonly<Record<string, string | undefined>>;

const hostnamePattern = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

const bytePattern = /^(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])$/;

/**
 * Returns 4 or 6 for an IP address without a zone, or 0 for other text. Importing `node:net` instead would add 6 ms to
 * every start.
 */
function ipVersion(text: string): 0 | 4 | 6 {
  const parts = text.split(".");
  if (parts.length === 4 && parts.every((part) => bytePattern.test(part))) return 4;
  return /^[0-9a-f:.]+$/i.test(text) && text.includes(":") && URL.canParse(`http://[${text}]/`) ? 6 : 0;
}

/** Removes the brackets of an IPv6 address in a URL: `[::1]` becomes `::1`. */
export function bareHost(host: string): string {
  return host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
}

/** Reports whether a text is an IP address, in brackets or not, or a host name. */
export function isHost(text: string): boolean {
  if (ipVersion(bareHost(text)) !== 0) return true;
  // Text like 127.0.0.256 is an invalid address, and must not count as a host name.
  return hostnamePattern.test(text) && !/^[\d.]+$/.test(text);
}

/**
 * Reports whether a server that listens on this host is reachable only from this machine. `localhost` is the only host
 * name for which this holds.
 */
export function isLoopbackHost(host: string): boolean {
  const bare = bareHost(host).toLowerCase();
  if (bare === "localhost" || bare === "::1" || bare === "0:0:0:0:0:0:0:1") return true;
  const mapped = bare.startsWith("::ffff:") ? bare.slice("::ffff:".length) : bare;
  return ipVersion(mapped) === 4 && mapped.startsWith("127.");
}

/** Reports whether a text is one IPv4 or IPv6 address, or a CIDR range. */
export function isAddressOrRange(text: string): boolean {
  const [address = "", prefix, ...rest] = text.split("/");
  const version = ipVersion(address);
  if (version === 0 || rest.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128);
}

/** Reports whether the text is a URL of scheme, host and port only: `https://ai.example.com`. */
export function isOriginUrl(text: string): boolean {
  return parseHttpUrl(text)?.pathname === "/";
}

/**
 * Reports whether the text is a valid OpenID Connect issuer: https, or http on this machine, without query and
 * fragment.
 */
export function isIssuerUrl(text: string): boolean {
  const url = parseHttpUrl(text);
  return url !== undefined && (url.protocol === "https:" || isLoopbackHost(url.hostname));
}

/**
 * Reports whether the text is a URL such as `postgres://user:password@host:5432/database`, with optional parameters.
 */
export function isPostgresUrl(text: string): boolean {
  const url = serverUrl(text, /^postgres(ql)?:\/\/[^/]/i);
  if (url === undefined || !/^\/[^/]+$/.test(url.pathname) || !isPercentEncoded(url.pathname)) return false;
  return /^(disable|allow|prefer|require|verify-ca|verify-full)$/.test(url.searchParams.get("sslmode") ?? "prefer");
}

/** Reports whether the text is a URL such as `redis://user:password@host:6379/0`, or `rediss://` for TLS. */
export function isRedisUrl(text: string): boolean {
  const url = serverUrl(text, /^rediss?:\/\/[^/]/i);
  return url !== undefined && /^\/?\d*$/.test(url.pathname) && url.search === "";
}

function serverUrl(text: string, scheme: RegExp): URL | undefined {
  if (!scheme.test(text) || /[\s#]/.test(text) || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return isHost(url.hostname) && [url.username, url.password].every(isPercentEncoded) ? url : undefined;
}

/**
 * Reports whether the text is a URL such as `smtps://user:password@host:465`, or `smtp://` for STARTTLS. Nothing may
 * follow the port.
 */
export function isSmtpUrl(text: string): boolean {
  if (!/^smtps?:\/\/[^/]/i.test(text) || /[\s?#]/.test(text) || !URL.canParse(text)) return false;
  const url = new URL(text);
  if (!isHost(url.hostname) || !/^\/?$/.test(url.pathname) || (url.username === "") !== (url.password === ""))
    return false;
  return [url.username, url.password].every(isPercentEncoded);
}

function isPercentEncoded(text: string): boolean {
  try {
    return !hasControls(decodeURIComponent(text));
  } catch {
    return false;
  }
}

/** Reports whether the text is a mail sender: `headrace@example.com`, or `Headrace <headrace@example.com>`. */
export function isSender(text: string): boolean {
  const address = /^[^<>"]{1,100} <([^<>]+)>$/.exec(text)?.[1] ?? text;
  return !hasControls(text) && /^[^\s@<>,;:"()]{1,64}@[^\s@<>,;:"()]{1,253}$/.test(address);
}

function hasControls(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/**
 * Reports whether the text equals an origin as browsers send it in `Origin`: without a default port and without a
 * trailing slash.
 */
export function isExactOrigin(text: string): boolean {
  return parseHttpUrl(text)?.origin === text;
}

/**
 * Reports whether traces may be sent to this URL. A URL with a credential is refused, because credentials belong in a
 * header.
 */
export function isCollectorUrl(text: string): boolean {
  return parseHttpUrl(text) !== undefined;
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const headerValue = /^[ -~]{1,4096}$/;

/** Reports whether name and value form a valid header field. A line break in the value would begin another field. */
export function isHeader(name: string, value: string): boolean {
  return headerName.test(name) && headerValue.test(value);
}

/**
 * Parses `name=value,name=value` with percent-encoded values, the form of OTEL_EXPORTER_OTLP_HEADERS; undefined for any
 * other text.
 */
export function parseHeaderList(text: string): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  for (const pair of text.split(",")) {
    if (pair.trim() === "") continue;
    const at = pair.indexOf("=");
    const name = pair.slice(0, at).trim().toLowerCase();
    let value: string;
    try {
      value = decodeURIComponent(pair.slice(at + 1).trim());
    } catch {
      return undefined;
    }
    if (at < 1 || !isHeader(name, value)) return undefined;
    headers[name] = value;
  }
  return headers;
}

/** Maximum number of secrets. More than one is needed only while a secret is being replaced. */
const maxSecrets = 4;

/**
 * Decodes 32 bytes from 64 hex digits, base64 or base64url to 64 lower-case hex digits; undefined for any other text.
 */
export function decodeSecret(text: string): string | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase();
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  return Buffer.from(text, "base64").toString("hex");
}

/**
 * Decodes one or more secrets, separated by commas or line breaks. Returns each secret once; undefined if one is
 * invalid or there are too many.
 */
export function decodeSecrets(text: string): readonly string[] | undefined {
  const secrets = text
    .trim()
    .split(/\s*[,\s]\s*/)
    .map(decodeSecret);
  if (secrets.length > maxSecrets || secrets.includes(undefined)) return undefined;
  return [...new Set(secrets.filter((secret) => secret !== undefined))];
}

/**
 * Returns `$XDG_DATA_HOME/headrace`, else `~/.local/share/headrace` (XDG Base Directory: relative values are ignored).
 */
export function defaultDataDir(env: Env): string {
  const { XDG_DATA_HOME: base } = env;
  return join(base?.startsWith("/") ? base : join(homeDirectory(env), ".local", "share"), "headrace");
}

/** Returns an absolute path. `~/` is replaced by the home directory, because no shell does this for paths in a file. */
export function resolvePath(path: string, from: string, env: Env): string {
  return path === "~" || path.startsWith("~/") ? join(homeDirectory(env), path.slice(2)) : resolve(from, path);
}

/** Parses a decimal number; undefined for any other text. */
export function readNumber(text: string): number | undefined {
  return /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : undefined;
}

/** Parses true, false, 1 or 0 in any case; undefined for any other text. */
export function readSwitch(text: string): boolean | undefined {
  const word = text.trim().toLowerCase();
  if (word === "true" || word === "1") return true;
  return word === "false" || word === "0" ? false : undefined;
}
