// Documents of clients from hosts that are right, wrong, slow, somewhere else than they were, or inside of the network.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type DocumentHost, startDocumentHost } from "../../../tests/support/client-documents.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { generateApiKey } from "../../domain/api-key.ts";
import { ClientDocuments, type ClientDocumentsOptions } from "./client-documents.ts";
import { appIdOf, isDocumentUrl } from "./document-url.ts";

let host: DocumentHost;
let clock: ReturnType<typeof manualClock>;
let asked: string[];

beforeEach(() => {
  host = startDocumentHost();
  clock = manualClock();
  asked = [];
});

afterEach(() => host[Symbol.dispose]());

function documents(more: Partial<ClientDocumentsOptions> = {}): ClientDocuments {
  return new ClientDocuments({
    ...{ rules: { allowLoopback: true }, resolve: host.resolve, ca: host.ca, hosts: null, environment: "live", clock },
    clientThrottle: { requireDocument: async (address) => void asked.push(address) },
    ...more,
  });
}

/** Why there is no client; `none` where there is one. */
async function faultOf(url: string, of = documents()): Promise<string> {
  const found = await of.find(url, "192.0.2.1");
  return "reason" in found ? found.reason : "none";
}

describe("a client metadata document", () => {
  test("reads a valid document as a public client with tool scopes and its address", async () => {
    const url = host.document("/client.json", { client_uri: "https://client.example/about", logo_uri: "https://x/y" });
    expect(await documents().find(url, "192.0.2.1")).toEqual({
      ...{ id: appIdOf(url), accountId: "", personId: null, name: "Cli", publisher: new URL(url).host },
      ...{ homepageUrl: "https://client.example/about", type: "public", scopes: ["tools:use"], environment: "live" },
      ...{
        redirectUris: ["http://127.0.0.1/callback"],
        tools: null,
        requirePkce: true,
        secrets: [],
        suspendedBy: null,
      },
      ...{ createdBy: null, createdAt: clock.nowSeconds(), unverified: { documentUrl: url } },
    });
  });

  test.each<[string, Record<string, unknown>, string]>([
    ["of another client", { client_id: "https://other.example/client.json" }, "document_other_client"],
    ["with a secret", { client_secret: "s" }, "document_has_secret"],
    ["that wants to prove itself by a key", { token_endpoint_auth_method: "private_key_jwt" }, "document_method"],
    ["without redirect URIs", { redirect_uris: undefined }, "document_metadata"],
    ["with an open redirect URI", { redirect_uris: ["http://client.example/"] }, "document_metadata"],
    ["with a redirect URI that runs a script", { redirect_uris: ["javascript:alert(1)"] }, "document_metadata"],
    ["with a name that turns around", { client_name: "Cli\u202e" }, "document_metadata"],
    ["with a name that holds an API key", { client_name: `Cli ${generateApiKey("live")}` }, "document_metadata"],
    ["with a name that is no text", { client_name: { a: 1 } }, "document_metadata"],
    ["that does without codes", { grant_types: ["client_credentials"] }, "document_metadata"],
  ])("refuses a document %s", async (_, changes, reason) => {
    expect(await faultOf(host.document("/client.json", changes))).toBe(reason);
  });

  test.each<[string, () => Response, string]>([
    ["that leads elsewhere", () => Response.redirect("/client.json", 302), "document_status_302"],
    ["that is a page", () => new Response("{}", { headers: { "content-type": "text/html" } }), "document_no_json"],
    ["that is a list", () => Response.json([]), "document_no_json"],
    ["that is no UTF-8", () => json(new Uint8Array([0x7b, 0xff, 0x7d])), "document_no_json"],
    ["that is longer than any", () => json(`{"a":"${"x".repeat(70_000)}"}`), "document_too_long"],
    ["that has no end", () => json(endless()), "document_too_long"],
    ["that says nothing", () => json(new ReadableStream({ pull: () => new Promise(() => {}) })), "document_timeout"],
    ["that is not there", () => new Response("", { status: 404 }), "document_status_404"],
  ])("refuses a document %s, in time", async (_, answer, reason) => {
    host.answers.set("/wrong.json", answer);
    host.document("/client.json");
    const began = performance.now();
    expect(await faultOf(`${host.origin}/wrong.json`, documents({ timeoutMs: 500 }))).toBe(reason);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(host.asked).toEqual(["/wrong.json"]);
  });

  test.each<[string, string[]]>([
    ["this machine", ["127.0.0.1"]],
    ["a private network", ["10.0.0.1"]],
    ["the metadata of a cloud", ["169.254.169.254"]],
    ["a mapped address", ["::ffff:127.0.0.1"]],
    ["a public address and a private one", ["93.184.216.34", "192.168.0.1"]],
  ])("does not fetch a document whose name leads to %s", async (_, addresses) => {
    const inward = documents({ rules: { allowLoopback: false }, resolve: async () => addresses });
    expect(await faultOf(host.document("/client.json"), inward)).toBe("document_address_not_public");
    expect(host.asked).toEqual([]);
  });

  test("fetches a document from the address that was checked, even if its name changes meanwhile", async () => {
    const answers = [["127.0.0.1"], ["10.0.0.1"]];
    const rebound = documents({ resolve: async () => answers.shift() ?? [] });
    expect(await faultOf(host.document("/client.json"), rebound)).toBe("none");
    expect(answers).toHaveLength(1);
  });

  test("refuses a document of a host without a valid certificate", async () => {
    const other = startDocumentHost();
    expect(await faultOf(host.document("/client.json"), documents({ ca: other.ca }))).toStartWith("document_");
    expect(host.asked).toEqual([]);
    other[Symbol.dispose]();
  });

  test("does not fetch a document of a host outside the configured ones", async () => {
    const url = host.document("/client.json");
    expect(await faultOf(url, documents({ hosts: ["claude.ai"] }))).toBe("document_host_not_allowed");
    expect(await faultOf(url, documents({ hosts: ["claude.ai", "client.example"] }))).toBe("none");
    expect(host.asked).toEqual(["/client.json"]);
  });
});

describe("cached client documents", () => {
  test.each([
    [{ "cache-control": "max-age=3600" }, 3_600],
    [{ "cache-control": "max-age=999999999" }, 86_400],
    [{ "cache-control": "no-store" }, 60],
    [{ "cache-control": "max-age=0" }, 60],
    [{}, 300],
  ])("caches a document as long as its host says, within bounds: %p", async (headers, seconds) => {
    const of = documents();
    const url = host.document("/client.json", {}, headers);
    await faultOf(url, of);
    clock.advance(seconds * 1_000 - 1);
    await faultOf(url, of);
    expect(host.asked).toHaveLength(1);
    clock.advance(1);
    await faultOf(url, of);
    expect(host.asked).toHaveLength(2);
  });

  test("caches a failed fetch for ten seconds only", async () => {
    const of = documents();
    const url = `${host.origin}/client.json`;
    expect(await faultOf(url, of)).toBe("document_status_404");
    host.document("/client.json");
    expect(await faultOf(url, of)).toBe("document_status_404");
    clock.advance(10_000);
    expect(await faultOf(url, of)).toBe("none");
  });

  test("fetches a document once for many concurrent requests", async () => {
    const of = documents();
    const url = host.document("/client.json");
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => faultOf(url, of))))).toEqual(new Set(["none"]));
    expect([host.asked, asked]).toEqual([["/client.json"], ["192.0.2.1"]]);
  });

  test("bounds the number of cached documents", async () => {
    const of = documents();
    for (let i = 0; i < 250; i++) await faultOf(host.document(`/${i}`), of);
    await faultOf(`${host.origin}/249`, of);
    expect(host.asked).toHaveLength(250);
    await faultOf(`${host.origin}/0`, of);
    expect(host.asked).toHaveLength(251);
  });
});

test.each([
  ["http://client.example/client.json"],
  ["https://client.example"],
  ["https://client.example/"],
  ["https://client.example/a/../b"],
  ["https://client.example/%2e%2e/b"],
  ["https://client.example/client.json#x"],
  ["https://user@client.example/client.json"],
  ["https://CLIENT.example/client.json"],
  ["https://client.example:443/client.json"],
  ["https://clіent.example/client.json"],
  ["https://127.0.0.1/client.json"],
  ["https://2130706433/client.json"],
  ["https://[::1]/client.json"],
  ["https://10.0.0.1:8443/client.json"],
  [`https://client.example/${"x".repeat(500)}`],
  ["app_1"],
  [""],
])("rejects %p as the address of a client document", (clientId) => {
  expect(isDocumentUrl(clientId)).toBe(false);
  expect(appIdOf(clientId)).toBe(clientId);
});

test("derives a client's id from the whole address of its document", () => {
  const ids = ["/a", "/b", "/a?x=1"].map((path) => appIdOf(`https://client.example${path}`));
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) expect(id).toMatch(/^app_[\w-]{43}$/);
});

function json(body: string | Uint8Array<ArrayBuffer> | ReadableStream): Response {
  return new Response(body, { headers: { "content-type": "application/json" } });
}

function endless(): ReadableStream {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(8_192).fill(0x20)) });
}
