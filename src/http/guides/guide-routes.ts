// Serves the guides at /docs, without authentication.
import { GatewayError } from "../../base/errors.ts";
import { guidesDirectory as built } from "../../installation/paths.ts";
import { isSameTag } from "../content/entity-tag.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { redirectTo } from "../pages/page.ts";
import { type GuideFile, GuideFiles, type GuideManifest } from "./guide-files.ts";

const forever = "public, max-age=31536000, immutable";

export interface GuideDeps {
  /** The directory of the built guides. The default is a directory next to the program. */
  guidesDirectory?: string;
}

export function guideRoutes({ guidesDirectory = built }: GuideDeps): PageRoute[] {
  const files = new GuideFiles(guidesDirectory);
  const route = (path: string, handle: PageRoute["handle"]): PageRoute => {
    return { method: "GET", path, access: "page", throttle: "file", handle };
  };
  return [
    // Without built guides, `/docs` redirects to the API reference.
    route("/docs", async () => redirectTo((await files.manifest()) ? "/docs/" : "/docs/api")),
    route("/docs/", (exchange) => answer(exchange, files)),
    route("/docs/*", (exchange) => answer(exchange, files)),
  ];
}

async function answer({ req, params }: Exchange, files: GuideFiles): Promise<PlainAnswer> {
  const manifest = await files.manifest();
  if (!manifest) {
    throw new GatewayError(
      "not_found",
      "The guides were not built; `npm run docs` does that, also beside a server that runs. The API reference is at /docs/api.",
    );
  }
  const address = params["*"] ?? "";
  const found = fileAt(manifest, address);
  // The path of a folder ends with a slash, and that of a page does not. If the path does not exist, the other form is
  // tried.
  const other = address.endsWith("/") ? address.slice(0, -1) : `${address}/`;
  if (!found && fileAt(manifest, other)) return redirectTo(`/docs/${other}`);
  const version = versionOf(manifest, address);
  const file = found ?? fileAt(manifest, `${version}404`);
  if (!file) throw new GatewayError("not_found", "There is no such page here.");
  const headers = {
    ...{ "cache-control": file.forever ? forever : "no-cache", etag: `W/"${file.tag}"`, vary: "accept-encoding" },
    ...(file.type.startsWith("text/html") && pageHeaders(manifest.scripts[version] ?? [])),
  };
  if (found && isSameTag(req.headers.get("if-none-match"), headers.etag)) return { status: 304, headers, body: "" };
  const read = await files.read(file, req.headers.get("accept-encoding"));
  if (!read) throw new GatewayError("not_found", "The guides were just built anew; load the page again.");
  const { encoding, bytes } = read;
  return {
    status: found ? 200 : 404,
    headers: { ...headers, "content-type": file.type, ...(encoding && { "content-encoding": encoding }) },
    body: bytes,
  };
}

function fileAt({ files }: GuideManifest, address: string): GuideFile | undefined {
  return Object.hasOwn(files, address) ? files[address] : undefined;
}

/** Returns the guide version that a path belongs to, by the longest matching prefix. */
function versionOf({ scripts }: GuideManifest, address: string): string {
  const of = Object.keys(scripts).filter((version) => address.startsWith(version));
  return of.sort((a, b) => b.length - a.length)[0] ?? "";
}

/**
 * Returns security headers that allow only the gateway's own scripts and styles, and the inline scripts of the build.
 */
function pageHeaders(scripts: readonly string[]): Record<string, string> {
  const sources = ["'self'", ...scripts].join(" ");
  return {
    "content-security-policy": `default-src 'none'; script-src ${sources}; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
    "cross-origin-opener-policy": "same-origin",
  };
}
