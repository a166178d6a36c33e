// The protected resources that access tokens are for (RFC 8707): the API, and the endpoints of tools, each known by its path.
import type { Scope } from "../../domain/scope.ts";
import { mcpServerName } from "../../domain/tools/mcp-server.ts";

export const apiResource = "/v1";
/** The resource of all MCP servers; the resource of each is below it. */
export const toolsResource = "/mcp";

const loopbackName = /^(?:127\.0\.0\.1|\[::1\]|localhost)$/;

/**
 * The path of one of ours, behind the public URL `issuer`; undefined for anything else. Whether there is an MCP server by
 * that name is not looked at: nobody learns it that way.
 */
export function resourceOf(uri: string, issuer: string): string | undefined {
  const url = uri.includes("#") ? null : URL.parse(uri);
  const own = URL.parse(issuer);
  if (!url || !own) return undefined;
  // This machine by another of its names: clients on it say the one that they were given.
  if (loopbackName.test(url.hostname) && loopbackName.test(own.hostname)) url.hostname = own.hostname;
  const root = own.href.replace(/\/$/, "");
  const path = url.href.startsWith(`${root}/`) ? url.href.slice(root.length).replace(/\/$/, "") : "";
  return path === apiResource || path === toolsResource || isOfOneServer(path) ? path : undefined;
}

function isOfOneServer(path: string): boolean {
  return path.startsWith(`${toolsResource}/`) && mcpServerName.test(path.slice(toolsResource.length + 1));
}

/** The resource that a path of ours belongs to, as it was sent. */
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

/** Reports whether a grant for these resources is good at another. A grant for all MCP servers is good at each. */
export function coversResource(granted: readonly string[], resource: string): boolean {
  return granted.some((one) => one === resource || (one === toolsResource && resource.startsWith(`${toolsResource}/`)));
}

/** Those that scopes are for, where nobody named any. */
export function defaultResources(scopes: readonly Scope[]): readonly string[] {
  const isForTools = (scope: Scope) => scope === "tools:use";
  if (scopes.every(isForTools) && scopes.length > 0) return [toolsResource];
  return scopes.some(isForTools) ? [apiResource, toolsResource] : [apiResource];
}

/**
 * The public URL by the name of this machine that the client says, where it is one of this machine: what clients are told of a resource has
 * to begin as what they were given does (RFC 9728, 3.3). `host`: the field of the request.
 */
export function rootAsAsked(issuer: string, host: string | null): string {
  const [own, asked] = [URL.parse(issuer), URL.parse(`http://${host ?? ""}`)];
  if (!own || !asked || own.protocol !== "http:" || own.port !== asked.port || own.hostname === asked.hostname) {
    return issuer;
  }
  return loopbackName.test(own.hostname) && loopbackName.test(asked.hostname) ? asked.origin : issuer;
}

/** Where a client learns of a resource (RFC 9728, 3.1): the path of the resource comes after the well-known one. */
export function resourceMetadataUrl(resource: string, root: string): string {
  return `${root}/.well-known/oauth-protected-resource${resource}`;
}
