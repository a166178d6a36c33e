// The address of a receiver: what may be given as one, and where it leads at an attempt.
import { fieldError } from "../../base/errors.ts";
import { parseRange } from "../../base/text/ip-range.ts";
import { isLoopbackAddress, isPublicAddress } from "./public-address.ts";

/** Gives all addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export interface ReceiverRules {
  /** In development, and where the configuration says so: this machine may be posted to, without TLS as well. */
  allowLoopback: boolean;
}

/** `message` is one of a few words: what a name leads to is told to nobody. */
export class ReceiverRefused extends Error {
  override readonly name = "ReceiverRefused";
}

const longestUrl = 2_048;
const resolvePatienceMs = 5_000;

/** The address in its one form. Throws `invalid_request` for what may not be posted to, as far as it tells by itself. */
export function receiverUrl(text: string, { allowLoopback }: ReceiverRules): string {
  const url = URL.parse(text);
  if (!url || text.length > longestUrl)
    throw fieldError("url", `must be an https address of ${longestUrl} characters at most.`);
  if (url.username !== "" || url.password !== "") {
    throw fieldError("url", "must have no user name and password in it; the signature tells who posts.");
  }
  if (url.hash !== "") throw fieldError("url", "must have no fragment.");
  const host = hostOf(url);
  const isLiteral = parseRange(host) !== undefined;
  const isLoopback = isLiteral ? isLoopbackAddress(host) : /(^|\.)localhost\.?$/i.test(host);
  if (allowLoopback && isLoopback && /^https?:$/.test(url.protocol)) return url.href;
  if (url.protocol !== "https:") throw fieldError("url", "must begin with https://.");
  if (isLoopback || (isLiteral ? !isPublicAddress(host) : host.includes(":"))) {
    throw fieldError("url", "must lead to the public internet, not to this machine or a private network.");
  }
  return url.href;
}

/**
 * The addresses to connect to at this attempt, each of them checked: the name is not asked again. Throws ReceiverRefused
 * where any of them is not public: who controls the name would decide which one is taken.
 */
export async function addressesOf(url: URL, { allowLoopback }: ReceiverRules, resolve: Resolve): Promise<string[]> {
  const host = hostOf(url);
  const found = parseRange(host) ? [host] : await resolve(host);
  if (found.length === 0) throw new ReceiverRefused("name_not_found");
  const isFine = (address: string) => isPublicAddress(address) || (allowLoopback && isLoopbackAddress(address));
  if (!found.every(isFine)) throw new ReceiverRefused("address_not_public");
  if (url.protocol !== "https:" && !(allowLoopback && found.every(isLoopbackAddress))) {
    throw new ReceiverRefused("not_https");
  }
  // Machines without IPv6 are told of such addresses as well.
  return [...found].sort((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
}

/**
 * Asks as the system is configured, over sockets: the system's own look-up takes one of the few threads that files, and the
 * names of model servers, need as well, for as long as the servers of a name say nothing.
 */
export const resolveBySystem: Resolve = async (name) => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new ReceiverRefused("name_not_found")), resolvePatienceMs);
  try {
    const found = await Promise.race([Bun.dns.lookup(name, { backend: "c-ares" }), late]);
    return found.map(({ address }) => address);
  } catch {
    throw new ReceiverRefused("name_not_found");
  } finally {
    clearTimeout(timer);
  }
};

/** IPv6 addresses without their brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}
