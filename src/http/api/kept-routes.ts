// Routes for objects that are stored for clients, such as files and batches. Callers with access to models may read and
// change them.
import type { ErrorForm, RouteDoc, ScopedRoute } from "../exchange/route.ts";

export interface KeptKind {
  /** Prefix of all paths. */
  base: string;
  tag: RouteDoc["tag"];
  /** The kind of object that `:id` in a path identifies. */
  noun: string;
  errorForm?: ErrorForm;
}

type KeptRoute = (
  method: ScopedRoute["method"],
  path: string,
  doc: Omit<RouteDoc, "tag" | "parameters">,
  handle: ScopedRoute["handle"],
) => ScopedRoute;

/** Returns a function that creates a route of this kind; `path` follows `base`. */
export function keptRoutes({ base, tag, noun, errorForm }: KeptKind): KeptRoute {
  const parameters = [{ name: "id", in: "path" as const, description: `Id of the ${noun}.` }];
  return (method, rest, doc, handle) => {
    const path = base + rest;
    return {
      ...{ method, path, access: method === "POST" ? "chat:write" : "chat:read" },
      doc: { ...doc, tag, ...(path.includes(":id") ? { parameters } : {}) },
      ...(errorForm && { errorForm }),
      handle,
    };
  };
}
