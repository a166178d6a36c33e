// Finds the proxy that the environment names for a URL, by the variables that other programs go by as well.

type Variables = Readonly<Record<string, string | undefined>>;

/** The URL of the proxy; undefined where connections go out directly. `url` is an http or https one. */
export function proxyFor(url: string, variables: Variables): string | undefined {
  const { protocol, hostname, port } = new URL(url);
  const of = (name: string) => variables[name.toLowerCase()] || variables[name] || undefined;
  const secure = protocol === "https:";
  const proxy = of(secure ? "HTTPS_PROXY" : "HTTP_PROXY") ?? of("ALL_PROXY");
  if (proxy === undefined || isExempt(hostname, port || (secure ? "443" : "80"), of("NO_PROXY") ?? ""))
    return undefined;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

/** `list`: names, each of which stands for what is under it as well, or `*`; with a port or without. */
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
