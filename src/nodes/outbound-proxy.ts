// Finds the proxy for a URL in environment variables such as HTTPS_PROXY and NO_PROXY.

type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the URL of the proxy; undefined for a direct connection. */
export function proxyFor(url: string, variables: Variables): string | undefined {
  const { protocol, hostname, port } = new URL(url);
  const of = (name: string) => variables[name.toLowerCase()] || variables[name] || undefined;
  const secure = protocol === "https:";
  const proxy = of(secure ? "HTTPS_PROXY" : "HTTP_PROXY") ?? of("ALL_PROXY");
  if (proxy === undefined || isExempt(hostname, port || (secure ? "443" : "80"), of("NO_PROXY") ?? ""))
    return undefined;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

/**
 * Reports whether NO_PROXY exempts a host. `list` contains host names (each with its subdomains) or `*`, perhaps with a
 * port.
 */
function isExempt(hostname: string, port: string, list: string): boolean {
  const host = hostname.toLowerCase();
  if (host === "localhost" || host === "127.0.0.1" || host === "[::1]") return true;
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      const [, name = "", ofPort] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry) ?? [];
      if (entry === "*") return true;
      if (name === "" || (ofPort !== undefined && ofPort !== port)) return false;
      return host === name || host.endsWith(`.${name}`);
    });
}
