// Makes of what the generator wrote what the server gives out: checked for dead links and for what the policy of pages refuses, compressed, listed.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join, posix, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { GuideFile, GuideManifest } from "../src/http/guides/guide-files.ts";

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};
/** Files of the repository are shown, never run. */
const plain = "text/plain; charset=utf-8";

/** `bases`: the addresses of the versions, below that of the site: "" and "v0.1/". Throws where a link is dead. */
export function publish(directory: string, bases: readonly string[]): void {
  const scripts: Record<string, readonly string[]> = Object.fromEntries(bases.map((base) => [base, []]));
  const files: Record<string, GuideFile> = {};
  const names = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .sort();
  const pages = new Map<string, string>();
  for (const name of names) {
    const address = name.replace(/(^|\/)index\.html$/, "$1").replace(/\.html$/, "");
    const bytes = readFileSync(join(directory, name));
    if (name.endsWith(".html")) {
      const html = bytes.toString();
      pages.set(address, html);
      const base = baseOf(name, bases);
      scripts[base] = [...new Set([...(scripts[base] ?? []), ...scriptsOf(html, name)])].sort();
    }
    const type = /(?:^|\/)files\//.test(name) && !name.endsWith(".html") ? plain : (types[extname(name)] ?? plain);
    const compressed = !type.startsWith("image/png") && bytes.length > 1_000;
    files[address] = {
      ...{ file: name, type, tag: createHash("sha256").update(bytes).digest("base64url").slice(0, 22) },
      ...(compressed && { compressed }),
      ...(/(?:^|\/)assets\/(?:chunks\/)?[^/]*\.[\w-]{8,}(?:\.lean)?\.\w+$/.test(name) && { forever: true as const }),
    };
    if (compressed) compress(join(directory, name), bytes);
  }
  requireLiveLinks(pages, files);
  writeFileSync(join(directory, "manifest.json"), JSON.stringify({ scripts, files } satisfies GuideManifest));
}

function baseOf(name: string, bases: readonly string[]): string {
  return bases.filter((base) => name.startsWith(base)).sort((a, b) => b.length - a.length)[0] ?? "";
}

/** The inline scripts of a page as a policy allows them (CSP 3, hash sources). Throws where it has styles of its own. */
function scriptsOf(html: string, name: string): string[] {
  const style = /<[a-z][^>]* style="[^"]*"|<style\b/.exec(html)?.[0];
  if (style !== undefined) throw new Error(`${name}: the policy of pages takes no inline style, such as ${style}`);
  return [...html.matchAll(/<script\b([^>]*)>([\s\S]*?)<\/script>/g)]
    .filter(([, attributes = ""]) => !/\bsrc=/.test(attributes))
    .map(([, , text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`);
}

function compress(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
}

/** Addresses outside of the site are the server's. */
function requireLiveLinks(pages: ReadonlyMap<string, string>, files: GuideManifest["files"]): void {
  const ids = new Map([...pages].map(([address, html]) => [address, new Set(html.match(/(?<=\sid=")[^"]+/g))]));
  const dead: string[] = [];
  for (const [address, html] of pages) {
    for (const [, href = ""] of html.matchAll(/<a\b[^>]*\shref="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(href)) continue;
      const [path = "", anchor] = decodeURIComponent(href.replaceAll("&amp;", "&")).split("#");
      const absolute = path === "" ? `/docs/${address}` : posix.resolve(`/docs/${address}`, "..", path);
      const target = path.endsWith("/") && absolute !== "/" ? `${absolute}/` : absolute;
      if (!target.startsWith("/docs/") || target === "/docs/api") continue;
      const found = target.slice("/docs/".length);
      const known = files[found] !== undefined && (anchor === undefined || (ids.get(found)?.has(anchor) ?? false));
      if (!known) dead.push(`${address || "index"}: ${href}`);
    }
  }
  if (dead.length > 0) throw new Error(`Links of the guides lead nowhere:\n${[...new Set(dead)].join("\n")}`);
}
