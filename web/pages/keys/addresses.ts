// Checks IP addresses and ranges by the server's rules, before they are sent.

/** Accepts `192.0.2.1`, `192.0.2.0/24` and `2001:db8::/32`. */
export function isAddressOrRange(text: string): boolean {
  const [address = "", prefix, ...rest] = text.trim().split("/");
  if (rest.length > 0) return false;
  const bits = isIpv4(address) ? 32 : isIpv6(address) ? 128 : undefined;
  if (bits === undefined) return false;
  return prefix === undefined || (/^(0|[1-9]\d{0,2})$/.test(prefix) && Number(prefix) <= bits);
}

function isIpv4(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
}

/** The browser's URL parser validates IPv6 hosts. */
function isIpv6(text: string): boolean {
  return /^[0-9a-f:.]+$/i.test(text) && text.includes(":") && URL.canParse(`http://[${text}]/`);
}
