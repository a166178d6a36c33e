// The protected resources that access tokens are for (RFC 8707): the API and the MCP endpoints, each identified by its
// path.
import type { Scope } from "../../domain/scope.ts";
import { mcpServerName } from "../../domain/tools/mcp-server.ts";

export const apiResource = "/v1";
/** Path of the resource of all MCP servers. The resource of each MCP server is below this path. */
export const toolsResource = "/mcp";

const loopbackName = /^(?:127\.0\.0\.1|\[::1\]|localhost)$/;

/**
 * Returns the path of a resource of this gateway, below the public URL `issuer`; undefined for any other URL. Does not
 * check whether an MCP server of that name exists, so that clients cannot find out.
 */
export function resourceOf(uri: string, issuer: string): string | undefined {
  const url = uri.includes("#") ? null : URL.parse(uri);
  const own = URL.parse(issuer);
  if (!url || !own) return undefined;
  // Clients on this machine may use another loopback name than the public URL has.
  if (loopbackName.test(url.hostname) && loopbackName.test(own.hostname)) url.hostname = own.hostname;
  const root = own.href.replace(/\/$/, "");
  const path = url.href.startsWith(`${root}/`) ? url.href.slice(root.length).replace(/\/$/, "") : "";
  return path === apiResource || path === toolsResource || isOfOneServer(path) ? path : undefined;
}

function isOfOneServer(path: string): boolean {
  return path.startsWith(`${toolsResource}/`) && mcpServerName.test(path.slice(toolsResource.length + 1));
}

/** Returns the resource that a request's path belongs to. `path` is as sent, not decoded. */
export function resourceAt(path: string): string {
  if (path === toolsResource) return toolsResource;
  if (!path.startsWith(`${toolsResource}/`)) return apiResource;
  const decoded = decodedOr(path, toolsResource);
  return isOfOneServer(decoded) ? decoded : toolsResource;
}

function decodedOr(path: string, otherwise: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return otherwise;
  }
}

/**
 * Reports whether a grant for the resources `granted` is valid at `resource`. A grant for all MCP servers is valid at
 * each of them.
 */
export function coversResource(granted: readonly string[], resource: string): boolean {
  return granted.some((one) => one === resource || (one === toolsResource && resource.startsWith(`${toolsResource}/`)));
}

/** Returns the resources of a grant with these scopes, if the client names no resources. */
export function defaultResources(scopes: readonly Scope[]): readonly string[] {
  const isForTools = (scope: Scope) => scope === "tools:use";
  if (scopes.every(isForTools) && scopes.length > 0) return [toolsResource];
  return scopes.some(isForTools) ? [apiResource, toolsResource] : [apiResource];
}

/**
 * Returns the public URL. If the public URL and the request's header `host` both have a loopback name, the URL gets the
 * name that the client uses. The metadata of a resource must begin with the URL that the client was given (RFC 9728,
 * 3.3).
 */
export function rootAsAsked(issuer: string, host: string | null): string {
  const [own, asked] = [URL.parse(issuer), URL.parse(`http://${host ?? ""}`)];
  if (!own || !asked || own.protocol !== "http:" || own.port !== asked.port || own.hostname === asked.hostname) {
    return issuer;
  }
  return loopbackName.test(own.hostname) && loopbackName.test(asked.hostname) ? asked.origin : issuer;
}

/** Returns the URL of a resource's metadata (RFC 9728, 3.1): the path of the resource follows the well-known path. */
export function resourceMetadataUrl(resource: string, root: string): string {
  return `${root}/.well-known/oauth-protected-resource${resource}`;
}
