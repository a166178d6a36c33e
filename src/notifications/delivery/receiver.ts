// Validates the URL of a webhook receiver.
import { fieldError } from "../../base/errors.ts";
import { parseRange, rangesContain } from "../../base/text/ip-range.ts";
import { type EgressRules, hostOf } from "../../egress/addresses.ts";
import { isLoopbackAddress, isPublicAddress } from "../../egress/public-address.ts";

const maxUrlLength = 2_048;

/**
 * Returns the normalised URL. Throws `invalid_request` if webhooks may not be sent there. Does not resolve host names.
 */
export function receiverUrl(text: string, { allowLoopback, networks }: EgressRules): string {
  const url = URL.parse(text);
  if (!url || text.length > maxUrlLength)
    throw fieldError("url", `must be an https address of ${maxUrlLength} characters at most.`);
  if (url.username !== "" || url.password !== "") {
    throw fieldError("url", "must have no user name and password in it; the signature tells who posts.");
  }
  if (url.hash !== "") throw fieldError("url", "must have no fragment.");
  const host = hostOf(url);
  const isLiteral = parseRange(host) !== undefined;
  const isLoopback = isLiteral ? isLoopbackAddress(host) : /(^|\.)localhost\.?$/i.test(host);
  if (allowLoopback && isLoopback && /^https?:$/.test(url.protocol)) return url.href;
  // A host name that is not permitted itself may resolve to an address in a permitted range. Each attempt checks the
  // addresses.
  const isPermitted = networks && (networks.hosts.includes(host) || rangesContain(networks.ranges, host));
  const mayBePermitted = isPermitted || (networks && networks.ranges.length > 0 && !isLiteral && !isLoopback);
  if (mayBePermitted && /^https?:$/.test(url.protocol)) return url.href;
  if (url.protocol !== "https:") throw fieldError("url", "must begin with https://.");
  if (isLoopback || (isLiteral ? !isPublicAddress(host) : host.includes(":"))) {
    throw fieldError("url", "must lead to the public internet, not to this machine or a private network.");
  }
  return url.href;
}
