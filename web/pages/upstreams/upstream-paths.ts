// API paths of model servers, and the queries that a change of one makes stale.

export const upstreamsPath = "/v1/admin/upstreams";
export const staleWithUpstreams = [upstreamsPath, "/v1/admin/models", "/v1/model-status", "/v1/models"];

export function upstreamPath(name: string): string {
  return `${upstreamsPath}/${encodeURIComponent(name)}`;
}
