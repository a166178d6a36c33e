// Serves the scripts and styles of HTML pages: a fixed list of files, read at the first request and cached.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { GatewayError } from "../../base/errors.ts";
import { pageAsset, webauthnScript } from "../../installation/paths.ts";
import type { PageRoute } from "../exchange/route.ts";

interface AssetSource {
  type: string;
  read(): Promise<Uint8Array>;
}

interface Asset {
  type: string;
  etag: string;
  bytes: Uint8Array;
}

const css = "text/css; charset=utf-8";
const javascript = "text/javascript; charset=utf-8";

const sources: Readonly<Record<string, AssetSource>> = {
  "pages.css": { type: css, read: () => ownFile("pages.css") },
  "logo.svg": { type: "image/svg+xml", read: () => ownFile("logo.svg") },
  "passkeys.js": { type: javascript, read: () => ownFile("passkeys.js") },
  "simplewebauthn.js": { type: javascript, read: readWebauthnLibrary },
};

export function assetRoutes(): PageRoute[] {
  const read = new Map<string, Promise<Asset>>();
  const find = (name: string): Promise<Asset> => {
    const source = Object.hasOwn(sources, name) ? sources[name] : undefined;
    if (!source) throw new GatewayError("not_found", "There is no such file here.");
    const kept = read.get(name);
    if (kept) return kept;
    const asset = source.read().then((bytes) => ({ type: source.type, etag: etagOf(bytes), bytes }));
    read.set(name, asset);
    // If reading the file failed, it is read again by the next request.
    asset.catch(() => read.delete(name));
    return asset;
  };
  return [
    {
      method: "GET",
      path: "/assets/:name",
      access: "page",
      throttle: "file",
      async handle({ req, params }) {
        const { type, etag, bytes } = await find(params["name"] ?? "");
        // With `no-cache`, browsers check the file each time, so that a page never uses files of an earlier version.
        const headers = { etag, "cache-control": "no-cache" };
        if (isKnown(req.headers.get("if-none-match"), etag)) return { status: 304, headers, body: "" };
        return { status: 200, headers: { ...headers, "content-type": type }, body: bytes };
      },
    },
  ];
}

/** Reports whether the client already has the file, by weak comparison (RFC 9110, 13.1.2). */
function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  return ifNoneMatch.split(",").some((known) => known.trim().replace(/^W\//, "") === etag || known.trim() === "*");
}

function etagOf(bytes: Uint8Array): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`;
}

function ownFile(name: string): Promise<Uint8Array> {
  return readFile(pageAsset(name));
}

/** Functions of the WebAuthn library that the gateway's scripts import. */
const webauthnNames = [
  "WebAuthnAbortService",
  "WebAuthnError",
  "browserSupportsWebAuthn",
  "browserSupportsWebAuthnAutofill",
  "platformAuthenticatorIsAvailable",
  "startAuthentication",
  "startRegistration",
];

/** Converts the library's script, which sets a global variable, into a module that exports the variable's members. */
async function readWebauthnLibrary(): Promise<Uint8Array> {
  const script = await readFile(webauthnScript(), "utf8");
  return Buffer.from(`${script}\nexport const { ${webauthnNames.join(", ")} } = globalThis.SimpleWebAuthnBrowser;\n`);
}
