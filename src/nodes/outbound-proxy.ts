// Finds the proxy for a URL in the environment, by the usual variables.

type Variables = Readonly<Record<string, string | undefined>>;

/** Returns the URL of the proxy, or undefined for direct connections. `url` is an http or https URL. */
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
 * Reports whether a host is exempt from the proxy. `list` contains names, each including its subdomains, or `*`, with
 * or without a port.
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
